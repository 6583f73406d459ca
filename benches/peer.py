#!/usr/bin/env python3
"""Tailbound's client beside vLLM's Rust client (`vllm-rs bench serve`), each against the emulator's own log of the truth.

    pip download --no-deps vllm==0.33.0 && unzip -j vllm-*.whl vllm/vllm-rs && chmod +x vllm-rs
    cargo build --release
    benches/peer.py --peer ./vllm-rs --tokenizer TOKENIZER.json [--rounds 3]

One emulator; the clients take turns with the same arguments. Checked: our result JSON has every key theirs has; counts are equal; each of
our latency figures is within 2 ms or 2 % of the truth log. Where theirs is off the truth, it is printed.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

METRICS = ("ttft", "tpot", "itl", "e2el")


def percentile(values, p):
    """numpy's default: linear interpolation."""
    values = sorted(values)
    at = (len(values) - 1) * p / 100
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (at - low)


def truth(log, prefix):
    """Figures in ms from the emulator's log: from the request's arrival to each token's send."""
    samples = {m: [] for m in METRICS}
    for line in open(log):
        row = json.loads(line)
        sent = [t / 1e6 for t in row.get("sent") or []]
        if not row["id"].startswith(prefix) or len(sent) < 2:
            continue
        samples["ttft"].append(sent[0])
        samples["e2el"].append(sent[-1])
        samples["tpot"].append((sent[-1] - sent[0]) / (len(sent) - 1))
        samples["itl"] += [b - a for a, b in zip(sent, sent[1:])]
    out = {}
    for m, v in samples.items():
        out[f"mean_{m}_ms"] = statistics.fmean(v)
        out[f"median_{m}_ms"] = statistics.median(v)
        out[f"p99_{m}_ms"] = percentile(v, 99)
    return out, len(samples["ttft"])


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--peer", required=True)
    args.add_argument("--tokenizer", required=True)
    args.add_argument("--ours", default="target/release/tailbound")
    args.add_argument("--rounds", type=int, default=3)
    args = args.parse_args()
    work = pathlib.Path(tempfile.mkdtemp())
    log = work / "truth.jsonl"
    emulator = subprocess.Popen(
        [args.ours, "emulate", "--port", "0", "--served-model-name", "m", "--tokenizer", args.tokenizer, "--truth-log", log],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    url = emulator.stdout.readline().split()[-1]
    shared = ["--base-url", url, "--model", "m", "--tokenizer", args.tokenizer, "--dataset-name", "random", "--random-input-len", "256",
              "--random-output-len", "64", "--num-prompts", "200", "--request-rate", "20", "--percentile-metrics", "ttft,tpot,itl,e2el",
              "--prompt-token-ids", "--save-result", "--save-detailed", "--result-dir", str(work)]
    results = {"tailbound": [], "vllm-rs": []}
    try:
        for i in range(args.rounds):
            for name, command in (("vllm-rs", [args.peer, "bench", "serve", "--disable-tqdm"]), ("tailbound", [args.ours, "bench", "serve", "--no-fail"])):
                file, prefix = f"{name}-{i}.json", f"{name}-{i}-"
                done = subprocess.run(command + shared + ["--result-filename", file, "--request-id-prefix", prefix, "--seed", str(i)],
                                      capture_output=True, text=True)
                if done.returncode:
                    sys.exit(f"{name} failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
                results[name].append((prefix, json.load(open(work / file))))
    finally:
        emulator.terminate()
        emulator.wait()
    ok = report(results, log)
    print("all as it should be" if ok else "NOT as it should be")
    return 0 if ok else 1


def report(results, log):
    ours, theirs = results["tailbound"][0][1], results["vllm-rs"][0][1]
    missing = sorted(set(theirs) - set(ours))
    print(f"keys: theirs {len(theirs)}, ours {len(ours)}, theirs that ours lacks: {missing or 'none'}")
    ok = not missing
    for key in ("completed", "failed", "total_input_tokens", "total_output_tokens"):
        pairs = [(o[1][key], t[1][key]) for o, t in zip(results["tailbound"], results["vllm-rs"])]
        same = all(a == b for a, b in pairs)
        ok &= same
        print(f"{key}: {'equal' if same else 'DIFFERENT'} {pairs}")
    print(f"{'figure (ms)':<18} {'truth':>9} {'tailbound':>10} {'off by':>8}   {'truth':>9} {'vllm-rs':>10} {'off by':>8}   (worst round of each)")
    figures = {name: [(r, *truth(log, prefix)) for prefix, r in runs] for name, runs in results.items()}
    for m in METRICS:
        for stat in ("mean", "median", "p99"):
            key = f"{stat}_{m}_ms"
            cells = []
            for name in ("tailbound", "vllm-rs"):
                real, said = max(((t[key], r[key]) for r, t, _ in figures[name]), key=lambda x: abs(x[1] - x[0]))
                cells.append(f"{real:9.3f} {said:10.3f} {said - real:+8.3f}")
                if name == "tailbound" and abs(said - real) > max(2.0, 0.02 * real):
                    ok = False
                    cells.append("OFF")
            print(f"{key:<18} " + "   ".join(cells))
    return ok


if __name__ == "__main__":
    sys.exit(main())
