#!/usr/bin/env python3
"""The client beside the minimal client, interleaved, against one mock with a truth log.

    CARGO_TARGET_DIR=/tmp/kit cargo build --release --manifest-path PATH/TO/sse-bench-kit/Cargo.toml
    cargo build --release -p tailbound-client --example load
    python3 benches/client_vs_min.py --kit /tmp/kit/release --load target/release/examples/load [--rounds 5] [--only itl20,error]

Server on core 0, clients on core 1; `--rt` runs the server at SCHED_FIFO 20 and the clients at 10, which is the only way to see a
client's own error on a shared machine. CPU is user + system time of the whole client process. Medians over the rounds.
"""
import argparse, json, os, statistics as st, subprocess, sys, tempfile, time, urllib.request

p = argparse.ArgumentParser()
p.add_argument("--kit", required=True)
p.add_argument("--load", required=True)
p.add_argument("--rounds", type=int, default=5)
p.add_argument("--port", type=int, default=18451)
p.add_argument("--rt", action="store_true")
p.add_argument("--only", default="")
args = p.parse_args()
only = set(filter(None, args.only.split(",")))
tmp = tempfile.mkdtemp(prefix="client-bench-")
url = f"http://127.0.0.1:{args.port}"


def get(path):
    return json.loads(urllib.request.urlopen(url + path, timeout=30).read())


def run(cmd, core, prio=None, limit=60):
    pre = ["taskset", "-c", str(core)]
    if args.rt and prio:
        pre = ["chrt", "-f", str(prio)] + pre
    out = subprocess.run(pre + cmd, capture_output=True, text=True, timeout=limit)
    if out.returncode or not out.stdout.strip():
        sys.exit(f"{cmd}: {out.returncode} {out.stderr}")
    return json.loads(out.stdout.strip().splitlines()[-1])


def tailbound(*flags):
    return run([args.load, "--url", url, *map(str, flags)], 1, 10)


def minimal(*flags):
    r = run([f"{args.kit}/sse-min", "--port", str(args.port), *map(str, flags)], 1, 10)
    r["cpu_s"] = r["cpu_user_s"] + r["cpu_sys_s"]
    return r


def q(xs, f):
    xs = sorted(xs)
    return xs[min(len(xs) - 1, int(f * len(xs)))] if xs else float("nan")


def wanted(name):
    return not only or name in only


def pair(name, setup, flags, unit):
    """Both clients, interleaved; the ratio of CPU per `unit`."""
    if not wanted(name):
        return
    get(f"/mock/set?{setup}")
    ours, mins, rss, co = [], [], [], []
    for _ in range(args.rounds):
        get("/mock/reset")
        m = minimal(*flags)
        get("/mock/reset")
        t = tailbound(*flags)
        n = lambda r: r["events"] if unit == "event" else r["ok"]
        mins.append(m["cpu_s"] / m["ok"] * m["ok"] / n(m) * 1e6)
        ours.append(t["cpu_s"] / n(t) * 1e6)
        rss.append(t["rss_kib"] / 1024)
        co.append(t["coalesced"] / max(1, t["events"]))
        assert t["ok"] == t["requests"], t
    ratios = [a / b for a, b in zip(ours, mins)]
    print(f"{name:12} us CPU per {unit}: ours {st.median(ours):8.2f}  minimal {st.median(mins):8.2f}  ratio of medians {st.median(ours)/st.median(mins):.3f}"
          f"  median of ratios {st.median(ratios):.3f}  (each: {' '.join(f'{r:.2f}' for r in ratios)})  RSS {max(rss):.1f} MiB  coalesced {st.median(co):.1%}", flush=True)


def errors(name, setup, flags):
    """Our stamps against the server's own send times; TTFT from the request written to the first token, as the server's from received to sent."""
    if not wanted(name):
        return
    get(f"/mock/set?{setup}")
    rounds = []
    for _ in range(args.rounds):
        get("/mock/reset")
        rows_file, truth_file = f"{tmp}/rows", f"{tmp}/truth"
        t = tailbound(*flags, "--unique", "--out", rows_file)
        s = get(f"/mock/dump?file={truth_file}")
        truth = {}
        for line in open(truth_file):
            r = json.loads(line)
            truth[r["body"]] = r
        shortest = min(truth)
        stamp, ttft, itl = [], [], []
        for line in open(rows_file):
            r = json.loads(line)
            w = truth[shortest + r["i"]]
            sent = [w["recv"] + x for x in w["sent"]]
            if len(sent) != len(r["at"]):
                continue
            stamp += [abs(a - b) / 1e6 for a, b in zip(r["at"], sent)]
            ttft.append(abs((r["first"] - r["written"]) - w["sent"][0]) / 1e6)
            itl += [abs((r["at"][i] - r["at"][i - 1]) - (sent[i] - sent[i - 1])) / 1e6 for i in range(1, len(sent))]
        rounds.append([q(stamp, .5), q(stamp, .99), q(ttft, .5), q(ttft, .99), q(itl, .5), q(itl, .99),
                       t["coalesced"] / t["events"], s["late_max"]["p99"], t["rss_kib"] / 1024, len(stamp)])
    m = [st.median(c) for c in zip(*rounds)]
    print(f"{name:12} error ms: stamp p50 {m[0]:.4f} p99 {m[1]:.4f}  TTFT p50 {m[2]:.4f} p99 {m[3]:.4f}  ITL p50 {m[4]:.4f} p99 {m[5]:.4f}"
          f"  coalesced {m[6]:.2%}  server late p99 {m[7]:.2f}  RSS {m[8]:.1f} MiB  events {m[9]:.0f}", flush=True)


def lateness(name, setup, flags, extra=()):
    if not wanted(name):
        return
    get(f"/mock/set?{setup}")
    ours, mins = [], []
    for _ in range(args.rounds):
        get("/mock/reset")
        m = minimal(*flags)["send_late_ms"]
        get("/mock/reset")
        t = tailbound(*flags, *extra)["send_late_ms"]
        ours.append((t["p50"], t["p99"]))
        mins.append((m["p50"], m["p99"]))
    f = lambda xs: f"p50 {st.median(x[0] for x in xs):.4f} p99 {st.median(x[1] for x in xs):.4f} (each p99: {' '.join(f'{x[1]:.2f}' for x in xs)})"
    print(f"{name:12} lateness ms: ours {f(ours)}  minimal {f(mins)}", flush=True)


server = ["taskset", "-c", "0", f"{args.kit}/sse-mock", "--port", str(args.port)]
if args.rt:
    server = ["chrt", "-f", "20"] + server
mock = subprocess.Popen(server, stderr=subprocess.DEVNULL)
try:
    time.sleep(0.5)
    print(f"# rt={args.rt} rounds={args.rounds} load average {os.getloadavg()[0]:.1f}", flush=True)
    pair("itl20", "ttft=50&itl=20&coalesce=1", ["--requests", 1000, "--concurrency", 1000, "--tokens", 100], "event")
    pair("undelayed", "ttft=0&itl=0&coalesce=1", ["--requests", 1000, "--concurrency", 1000, "--tokens", 200], "event")
    pair("co32", "ttft=0&itl=0&coalesce=32", ["--requests", 2000, "--concurrency", 1000, "--tokens", 400], "event")
    pair("req16", "ttft=0&itl=0&coalesce=1", ["--requests", 10000, "--concurrency", 64, "--tokens", 16], "request")
    errors("error", "ttft=50&itl=20&coalesce=1", ["--requests", 1000, "--concurrency", 1000, "--tokens", 100])
    errors("error10k", "ttft=3000&itl=500&coalesce=1", ["--requests", 10000, "--concurrency", 10000, "--tokens", 4])
    lateness("late2000", "ttft=20&itl=20&coalesce=1", ["--requests", 6000, "--rate", 2000, "--tokens", 4])
    lateness("late5000", "ttft=20&itl=20&coalesce=1", ["--requests", 10000, "--rate", 5000, "--tokens", 4])
    lateness("late2000+1k", "ttft=20&itl=20&coalesce=1", ["--requests", 6000, "--rate", 2000, "--tokens", 25])
finally:
    mock.terminate()
