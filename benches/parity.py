#!/usr/bin/env python3
"""The same small load through the live client and emulator, and through the simulation: one replica, and four taken in turn.

    cargo build
    benches/parity.py [--ours target/debug/tailbound] [--seconds 60]

A trace of Poisson arrivals and log-normal lengths is written; `tailbound bench serve` replays it over HTTP on the loopback against
`tailbound emulate`, `tailbound sim` replays it in virtual time. Four replicas are four emulators, and the client's side of round robin
is every fourth request to each. TTFT and TPOT must agree within 5 % at the median and 10 % at p90.
"""
import argparse
import csv
import json
import math
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

PROFILE = "llama-3.1-8b-h100"
SCENARIO = """seed = 1
policy = '''
apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins: [{{type: round-robin-picker}}]
schedulingProfiles: [{{name: default, plugins: [{{pluginRef: round-robin-picker}}]}}]
'''
[engines]
count = {count}
profile = "{profile}"
[traffic.trace]
file = "{trace}"
"""


def rows(seconds, rate, seed):
    draw, at = random.Random(seed), 0.0
    while (at := at + draw.expovariate(rate)) < seconds:
        prompt, answer = draw.lognormvariate(math.log(500), 0.8), draw.lognormvariate(math.log(80), 0.6)
        yield round(at, 6), min(max(int(prompt), 16), 6000), min(max(int(answer), 2), 400)


def write(path, rows):
    with open(path, "w", newline="") as out:
        table = csv.writer(out)
        table.writerow(["arrived_at", "num_prefill_tokens", "num_decode_tokens"])
        table.writerows(rows)


def live(ours, work, rows, replicas):
    """TTFT and TPOT in ms of every request over HTTP."""
    servers, clients, ttft, tpot = [], [], [], []
    try:
        for _ in range(replicas):
            servers.append(subprocess.Popen([ours, "emulate", "--port", "0", "--profile", PROFILE, "--served-model-name", "m", "--spin", "200us"],
                                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))
        urls = [server.stdout.readline().split()[-1] for server in servers]
        for i, url in enumerate(urls):
            # A replay begins with its first row: each part is earlier than in the whole by a few hundred milliseconds, which
            # replicas that share nothing don't notice.
            part = work / f"live-{replicas}-{i}.csv"
            write(part, rows[i::replicas])
            clients.append(subprocess.Popen(
                [ours, "bench", "serve", "--base-url", url, "--model", "m", "--dataset-name", "trace", "--dataset-path", part, "--ignore-eos", "--save-result",
                 "--save-detailed", "--result-dir", work, "--result-filename", f"live-{replicas}-{i}.json", "--no-fail", "--disable-tqdm"],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        for i, client in enumerate(clients):
            text = client.communicate()[0]
            if client.returncode:
                sys.exit(f"the live run failed: {text[-3000:]}")
            result = json.load(open(work / f"live-{replicas}-{i}.json"))
            ttft += [1e3 * t for t in result["ttfts"]]
            tpot += [1e3 * sum(gaps) / (n - 1) for gaps, n in zip(result["itls"], result["output_lens"]) if n > 1]
    finally:
        for process in servers + clients:
            process.terminate()
            process.wait()
    return ttft, tpot


def simulated(ours, work, rows, replicas):
    """The same figures in virtual time, from the run's folder."""
    trace, scenario, folder = work / f"sim-{replicas}.csv", work / f"sim-{replicas}.toml", work / f"sim-{replicas}"
    write(trace, rows)
    scenario.write_text(SCENARIO.format(count=replicas, profile=PROFILE, trace=trace))
    done = subprocess.run([ours, "sim", scenario, "--run-dir", folder, "--format", "json"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"the simulation failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def at(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, math.ceil(p / 100 * len(values)) - 1)]


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--ours", default="target/debug/tailbound")
    args.add_argument("--seconds", type=float, default=60)
    args.add_argument("--rate", type=float, default=6, help="requests per second and replica")
    args = args.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="parity-"))
    ok = True
    for replicas in (1, 4):
        load = list(rows(args.seconds, args.rate * replicas, replicas))
        ttft, tpot = live(args.ours, work, load, replicas)
        virtual = simulated(args.ours, work, load, replicas)
        print(f"{replicas} replica{'s' * (replicas > 1)}, {len(load)} requests, {args.rate * replicas:g}/s; live answered {len(ttft)}, simulated {virtual['completed']}")
        for name, values in (("ttft", ttft), ("tpot", tpot)):
            for p, most in ((50, 5), (90, 10)):
                a = at(values, p)
                b = virtual["tailbound"]["latency"][f"{name}_s"]["nearest_rank"][f"p{p}"] * 1e3
                off = 100 * (b / a - 1)
                ok &= abs(off) <= most
                print(f"  {name.upper()} p{p}: live {a:9.3f} ms, simulated {b:9.3f} ms, {off:+.2f} % (at most {most})")
    print("within the bounds" if ok else "NOT within the bounds")
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
