#!/usr/bin/env python3
"""The program itself (`tailbound bench serve`) under load: lateness and verdict, verdict when starved, CPU beside vLLM's Rust client.

    benches/client_real.py --kit KIT/release --ours target/release/tailbound --load target/release/examples/load \
        [--peer vllm-rs --tokenizer DIR] [--tls-mock target/release/examples/tls_mock] [--rounds 5] [--only late,busy,tls,starved,peer]

The mock runs on core 0 (SCHED_FIFO 20), all clients on core 1, interleaved. CPU is user + system time of the client process with all its
threads (wait4). `busy` is a process that does nothing but spin on core 1 at ordinary priority.
"""
import argparse, json, os, ssl, statistics as st, subprocess, sys, tempfile, time, urllib.request

p = argparse.ArgumentParser()
p.add_argument("--kit", required=True)
p.add_argument("--ours", required=True)
p.add_argument("--load", required=True)
p.add_argument("--peer")
p.add_argument("--tokenizer")
p.add_argument("--tls-mock")
p.add_argument("--rounds", type=int, default=5)
p.add_argument("--rt", action="store_true", help="peer: both clients at SCHED_FIFO 10")
p.add_argument("--port", type=int, default=18471)
p.add_argument("--only", default="")
args = p.parse_args()
only = set(filter(None, args.only.split(",")))
tmp = tempfile.mkdtemp(prefix="client-real-")
plain = f"http://127.0.0.1:{args.port}"
tls = f"https://localhost:{args.port + 1}"


def get(path, url=plain):
    context = ssl._create_unverified_context() if url is tls else None
    return json.loads(urllib.request.urlopen(url + path, timeout=60, context=context).read())


def run(command, core=1, prio=None, limit=120):
    """Exit code, stdout, stderr, CPU seconds of the whole child."""
    pre = (["chrt", "-f", str(prio)] if prio else []) + ["taskset", "-c", str(core)]
    out, err = open(f"{tmp}/out", "w+"), open(f"{tmp}/err", "w+")
    child = subprocess.Popen(pre + list(map(str, command)), stdout=out, stderr=err)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    out.seek(0), err.seek(0)
    return child.returncode, out.read(), err.read(), used.ru_utime + used.ru_stime


def serve(binary, *flags, detailed=False, url=plain, prio=None):
    name = f"{tmp}/result.json"
    if os.path.exists(name):
        os.remove(name)
    command = [binary, "bench", "serve", "--base-url", url, "--model", "mock", "--dataset-name", "random", "--random-input-len", "16", "--disable-tqdm",
               "--save-result", "--result-dir", tmp, "--result-filename", "result.json", *(["--save-detailed"] if detailed else []), *flags]
    code, out, err, cpu = run(command, prio=prio)
    if not os.path.exists(name):
        sys.exit(f"{command}: {code}\n{out[-2000:]}{err[-2000:]}")
    return code, json.load(open(name)), out, cpu


def q(xs, f):
    xs = sorted(xs)
    return xs[min(len(xs) - 1, int(f * len(xs)))] if xs else float("nan")


def each(xs, fmt=".2f"):
    return " ".join(format(x, fmt) for x in xs)


def spinner():
    return subprocess.Popen(["taskset", "-c", "1", sys.executable, "-c", "while True: pass"])


def late(name, setup, rate, n, tokens):
    """Lateness and verdict at real-time and at ordinary priority, beside the minimal client at the same."""
    get(f"/mock/set?{setup}")
    found = {}
    for _ in range(args.rounds):
        for kind, prio, flags in (("realtime", 10, ["--realtime"]), ("ordinary", None, [])):
            get("/mock/reset")
            _, out, _, _ = run([f"{args.kit}/sse-min", "--port", args.port, "--requests", n, "--rate", rate, "--tokens", tokens], prio=prio)
            m = json.loads(out.strip().splitlines()[-1])["send_late_ms"]
            get("/mock/reset")
            code, r, _, _ = serve(args.ours, "--skip-tokenizer-init", "--random-output-len", tokens, "--num-prompts", n, "--request-rate", rate, *flags)
            l, v = r["tailbound"]["latency"]["lateness_s"]["percentiles"], r["tailbound"]["verdict"]
            found.setdefault(kind, []).append((l["p50"] * 1e3, l["p99"] * 1e3, m["p50"], m["p99"], v["word"], [x["code"] for x in v["reasons"]], code))
    for kind, xs in found.items():
        med = [st.median(x[i] for x in xs) for i in range(4)]
        print(f"{name:10} {kind:9} lateness ms: ours p50 {med[0]:.4f} p99 {med[1]:.4f} (each p99: {each(x[1] for x in xs)})  minimal p50 {med[2]:.4f} p99 {med[3]:.4f}"
              f" (each p99: {each(x[3] for x in xs)})  VALID {sum(x[4] == 'VALID' for x in xs)} of {len(xs)}  reasons {[x[5] for x in xs if x[5]]}", flush=True)


def errors(name, url, busy, prio, extra=()):
    """Our stamps against the mock's own send times, 1,000 streams × 20 ms × 100 tokens."""
    rounds = []
    for _ in range(args.rounds):
        get("/mock/reset", url)
        rows, truth_file = f"{tmp}/rows", f"{tmp}/truth"
        spin = spinner() if busy else None
        try:
            code, out, err, _ = run([args.load, "--url", url, "--requests", 1000, "--concurrency", 1000, "--tokens", 100, "--unique", "--out", rows, *extra], prio=prio)
        finally:
            if spin:
                spin.terminate()
                spin.wait()
        if code:
            sys.exit(err)
        t = json.loads(out.strip().splitlines()[-1])
        s = get(f"/mock/dump?file={truth_file}", url)
        truth = {r["body"]: r for r in map(json.loads, open(truth_file))}  # of the ready check and the first request, alike, the later
        shortest = min(truth)
        stamp, ttft, itl = [], [], []
        for r in map(json.loads, open(rows)):
            w = truth[shortest + r["i"]]
            sent = [w["recv"] + x for x in w["sent"]]
            if len(sent) != len(r["at"]):
                continue
            stamp += [abs(a - b) / 1e6 for a, b in zip(r["at"], sent)]
            ttft.append(abs((r["first"] - r["written"]) - w["sent"][0]) / 1e6)
            itl += [abs((r["at"][i] - r["at"][i - 1]) - (sent[i] - sent[i - 1])) / 1e6 for i in range(1, len(sent))]
        rounds.append([q(stamp, .5), q(stamp, .99), q(ttft, .5), q(ttft, .99), q(itl, .5), q(itl, .99), t["coalesced"] / t["events"], s["late_max"]["p99"], len(stamp), t["cpu_s"] / t["events"] * 1e6])
    m = [st.median(c) for c in zip(*rounds)]
    print(f"{name:18} error ms: stamp p50 {m[0]:.4f} p99 {m[1]:.4f} (each: {each((r[1] for r in rounds), '.3f')})  TTFT p50 {m[2]:.4f} p99 {m[3]:.4f} (each: {each((r[3] for r in rounds), '.3f')})"
          f"  ITL p50 {m[4]:.4f} p99 {m[5]:.4f}  shared reads {m[6]:.2%}  server late p99 {m[7]:.2f}  events {m[8]:.0f}  CPU us/event {m[9]:.2f}", flush=True)


def starved():
    """Through the program: the client shares its core with more and more spinning processes."""
    get("/mock/set?ttft=50&itl=20&coalesce=1")
    for spins in (0, 1, 4):
        for _ in range(max(1, args.rounds // 2)):
            get("/mock/reset")
            others = [spinner() for _ in range(spins)]
            try:
                code, r, out, _ = serve(args.ours, "--skip-tokenizer-init", "--random-output-len", 100, "--num-prompts", 1000, "--max-concurrency", 1000)
            finally:
                for other in others:
                    other.terminate()
                    other.wait()
            v, c = r["tailbound"]["verdict"], r["tailbound"]["coalesced"]
            print(f"starved    {spins} spinning: {v['word']}, exit {code}, shared reads {c['share']:.2%}", flush=True)
            for reason in v["reasons"] + v["cautions"]:
                print(f"           {reason['code']}: {reason['sentence']}", flush=True)


def peer():
    """CPU per event and median TTFT, 1,000 streams × 20 ms × 100 tokens; the same flags. With `--rt` both at SCHED_FIFO 10: a client that
    has to wait for its core reads several events at once, which is cheaper, and wrong."""
    get("/mock/set?ttft=50&itl=20&coalesce=1")
    flags = ["--tokenizer", args.tokenizer, "--random-output-len", 100, "--num-prompts", 1000, "--max-concurrency", 1000, "--ignore-eos"]
    found = {"tailbound": [], "vllm-rs": []}
    for _ in range(args.rounds):
        for client, binary in (("vllm-rs", args.peer), ("tailbound", args.ours)):
            # What starting, reading the tokenizer and making prompts cost is taken off: the same run with one token a request.
            cost = []
            for tokens in (1, 100):
                get("/mock/reset")
                flags[3] = tokens
                _, r, _, cpu = serve(binary, *flags, "--ready-check-timeout-sec", 10, detailed=True, prio=10 if args.rt else None)
                s = get(f"/mock/dump?file={tmp}/truth")
                truth = [json.loads(line)["sent"] for line in open(f"{tmp}/truth")]
                truth = [x for x in truth if len(x) == tokens][1:]  # without the ready check's
                cost.append(cpu)
            said, real = r["median_ttft_ms"], st.median(x[0] for x in truth) / 1e6
            assert r["completed"] == 1000, r["completed"]
            found[client].append((cost[1] / 100_000 * 1e6, (cost[1] - cost[0]) / 99_000 * 1e6, said - real, r["median_itl_ms"], s["late_max"]["p99"]))
    for client, xs in found.items():
        m = [st.median(c) for c in zip(*xs)]
        print(f"{client:10} us CPU per event: whole process {m[0]:.2f} (each: {each(x[0] for x in xs)})  less the same run of 1 token {m[1]:.2f} (each: {each(x[1] for x in xs)})"
              f"  median TTFT off by {m[2]:+.3f} ms (each: {each((x[2] for x in xs), '+.2f')})", flush=True)
    for i, what in enumerate(("whole process", "less start and prompts")):
        ratios = [o[i] / t[i] for o, t in zip(found["tailbound"], found["vllm-rs"])]
        print(f"ratio      {what}: median {st.median(ratios):.3f} (each: {each(ratios)})", flush=True)


def wanted(name):
    return not only or name in only


mocks = [subprocess.Popen(["chrt", "-f", "20", "taskset", "-c", "0", f"{args.kit}/sse-mock", "--port", str(args.port)], stderr=subprocess.DEVNULL)]
if args.tls_mock:
    mocks.append(subprocess.Popen(["chrt", "-f", "20", "taskset", "-c", "0", args.tls_mock, "--port", str(args.port + 1)]))
try:
    time.sleep(0.7)
    print(f"# rounds={args.rounds} load average {os.getloadavg()[0]:.1f}", flush=True)
    if wanted("tls") and args.tls_mock:
        errors("tls", tls, False, 10, ["--insecure"])
    if wanted("busy"):
        get("/mock/set?ttft=50&itl=20&coalesce=1")
        errors("busy", plain, True, None, ["--ready-check"])
        errors("busy, --realtime", plain, True, None, ["--ready-check", "--realtime"])
        errors("the same, --preconnect", plain, True, None, ["--ready-check", "--realtime", "--preconnect", 1000])
        errors("no busy loop", plain, False, 10, ["--ready-check"])
    if wanted("starved"):
        starved()
    if wanted("peer") and args.peer:
        peer()
    if wanted("late"):
        late("late2000", "ttft=20&itl=20&coalesce=1", 2000, 6000, 25)
        late("late5000", "ttft=140&itl=20&coalesce=1", 5000, 15000, 4)
finally:
    for mock in mocks:
        mock.terminate()
        mock.wait()
