#!/usr/bin/env python3
"""Do the requests really leave as a Poisson process? Kolmogorov-Smirnov on the gaps between actual sends against Exp(rate).

    benches/arrivals.py --ours target/release/tailbound --mock KIT/release/sse-mock > benches/arrivals.md

The gaps are those of `start_times` in the detailed JSON: when each request really left, not when it was meant to. Nothing is fitted:
the rate is the one asked for. The mock runs on core 0 (SCHED_FIFO 20), the clients on core 1. At 5 %, five seeds in a hundred fail by chance; the bar is eight of ten.
"""
import argparse
import concurrent.futures
import json
import math
import os
import subprocess
import tempfile
import time

GAPS = 5000


def ks(gaps, rate):
    """D and its asymptotic p-value (with Stephens's correction for the sample's size)."""
    gaps = sorted(gaps)
    n = len(gaps)
    model = [1 - math.exp(-rate * gap) for gap in gaps]
    d = max(max((i + 1) / n - f, f - i / n) for i, f in enumerate(model))
    x = (math.sqrt(n) + 0.12 + 0.11 / math.sqrt(n)) * d
    p = 2 * sum((-1) ** (k - 1) * math.exp(-2 * k * k * x * x) for k in range(1, 101))
    return d, min(1.0, max(0.0, p))


def seed(args, folder, rate, number):
    name = f"{rate}-{number}.json"
    command = [
        "taskset", "-c", "1", args.ours, "bench", "serve", "--base-url", f"http://127.0.0.1:{args.port}", "--model", "mock", "--skip-tokenizer-init",
        "--random-input-len", "16", "--random-output-len", "1", "--num-prompts", str(GAPS + 1), "--request-rate", str(rate),
        "--seed", str(number), "--disable-tqdm", "--no-fail", "--save-result", "--save-detailed",
        "--result-dir", folder, "--result-filename", name, *args.flag,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=GAPS / rate * 3 + 60)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        raise SystemExit(f"{command}: {done.returncode} {done.stderr}")
    with open(path) as file:
        result = json.load(file)
    starts = sorted(result["start_times"])
    gaps = [b - a for a, b in zip(starts, starts[1:])]
    assert len(gaps) == GAPS, len(gaps)
    d, p = ks(gaps, rate)
    return number, d, p, sum(gaps) / len(gaps) * 1e3


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ours", required=True)
    parser.add_argument("--mock", required=True)
    parser.add_argument("--port", type=int, default=18461)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", default="100=5,500=2", help="how many seeds of each rate run at once")
    parser.add_argument("--flag", action="append", default=[], help="a further flag for `bench serve`")
    args = parser.parse_args()
    mock = subprocess.Popen(["chrt", "-f", "20", "taskset", "-c", "0", args.mock, "--port", str(args.port), "--no-log"], stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    try:
        print("# Poisson arrivals, as sent\n")
        print(f"{args.seeds} seeds of {GAPS:,} gaps between actual sends (`start_times`) against Exp(rate), Kolmogorov-Smirnov at 5 %; the command is at the")
        print(f"head of `benches/arrivals.py`{' with ' + ' '.join(args.flag) if args.flag else ''}. Load average {os.getloadavg()[0]:.1f} at the start.\n")
        print("| rate | seed | D | p | mean gap ms | |\n|---|---|---|---|---|---|")
        verdicts = []
        for rate, jobs in (map(int, part.split("=")) for part in args.jobs.split(",")):
            with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(jobs) as pool:
                rows = list(pool.map(lambda n: seed(args, folder, rate, n), range(1, args.seeds + 1)))
            for number, d, p, mean in rows:
                print(f"| {rate} | {number} | {d:.4f} | {p:.3f} | {mean:.4f} | {'passes' if p >= 0.05 else 'fails'} |", flush=True)
            verdicts.append(f"{rate}/s: {sum(p >= 0.05 for _, _, p, _ in rows)} of {args.seeds} pass")
        print("\n" + "; ".join(verdicts) + ".")
    finally:
        mock.terminate()


main()
