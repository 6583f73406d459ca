#!/usr/bin/env python3
"""A slice of a Mooncake trace replayed at ten times its speed against the emulator with its prefix cache on.

    cargo build --release
    benches/mooncake_replay.py --tokenizer TOKENIZER.json TRACE.jsonl [--rows 1500] [--blocks 8000]

Checked: the emulator's own hit ratio (its /metrics counters) against a simulated cache of the same size over the same rows, within 1 % of
the prompt tokens; sends late by less than 1 ms at p99; every row accounted for. The simulation is that of `tailbound workload describe`: in file order, a request hits the longest
leading run of resident blocks, then all its blocks are inserted or refreshed, first to last, least recently used out. Beside it stands
the same with what an engine does differently: only full blocks are kept, the last block of a prompt is always computed, and what a
request leaves goes out tail first.
"""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.request

BLOCK = 512


def simulate(rows, blocks, engine):
    """Share of prompt tokens found in a cache of so many blocks."""
    cache, hits, total = collections.OrderedDict(), 0, 0
    for row in rows:
        ids, tokens = row["hash_ids"], row["input_length"]
        if engine:
            ids = ids[: tokens // BLOCK]
        run = 0
        while run < len(ids) and ids[run] in cache:
            run += 1
        if engine:
            run = min(run, (tokens - 1) // BLOCK)
        hits += min(run * BLOCK, tokens)
        total += tokens
        for key in reversed(ids) if engine else ids:
            cache.pop(key, None)
            cache[key] = True
        while blocks is not None and len(cache) > blocks:
            cache.popitem(last=False)
    return hits / total


def counters(url):
    text = urllib.request.urlopen(url + "/metrics").read().decode()
    value = lambda name: sum(float(v) for v in re.findall(rf"^vllm:{name}_total(?:{{.*}})? (\S+)$", text, re.M))
    return value("prefix_cache_hits"), value("prefix_cache_queries")


def replay(args, slice_file, blocks, work):
    emulator = subprocess.Popen(
        [args.ours, "emulate", "--port", "0", "--served-model-name", "m", "--tokenizer", args.tokenizer, "--block-size", str(BLOCK), "--num-gpu-blocks",
         str(blocks), "--max-model-len", "262144", "--max-num-batched-tokens", "4000000", "--max-num-seqs", "1024", "--step-time", args.step_time],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        url = emulator.stdout.readline().split()[-1]
        done = subprocess.run(
            [args.ours, "bench", "serve", "--base-url", url, "--model", "m", "--tokenizer", args.tokenizer, "--prompt-token-ids", "--dataset-name", "mooncake",
             "--dataset-path", slice_file, "--rate-scale", str(args.speed), "--save-result", "--result-dir", work, "--result-filename", "r.json", "--no-fail",
             "--disable-tqdm", "--num-prompts", str(args.rows), *(f"--{flag}" for flag in args.client)],
            capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"the run failed: {done.stdout[-3000:]}{done.stderr[-3000:]}")
        return json.load(open(work / "r.json"))["tailbound"], counters(url), done.stdout
    finally:
        emulator.terminate()
        emulator.wait()


def main():
    args = argparse.ArgumentParser()
    args.add_argument("trace")
    args.add_argument("--tokenizer", required=True)
    args.add_argument("--ours", default="target/release/tailbound")
    args.add_argument("--rows", type=int, default=1500)
    args.add_argument("--blocks", type=int, nargs="+", default=[8000, 100000])
    args.add_argument("--speed", type=float, default=10)
    args.add_argument("--step-time", default="10ms")
    args.add_argument("--client", nargs="*", default=[], help="more flags for the client, without their dashes: realtime threads=2")
    args = args.parse_args()
    work = pathlib.Path(tempfile.mkdtemp())
    rows = [json.loads(line) for line in open(args.trace)]
    print(f"{pathlib.Path(args.trace).name}: {args.rows} of {len(rows)} rows at {args.speed:g} times the trace's speed")
    ok = True
    for blocks in args.blocks:
        run, (hits, queries), text = replay(args, args.trace, blocks, work)
        lines = text.splitlines()
        first, last = (next(i for i, line in enumerate(lines) if f"-{title}-" in line) for title in ("Trace", "Tokens"))
        if blocks == args.blocks[0]:
            print("\n".join(lines[first:last]))
        own, plain, engine = hits / queries, simulate(rows[: args.rows], blocks, False), simulate(rows[: args.rows], blocks, True)
        late = run["latency"]["lateness_s"]["nearest_rank"]["p99"] * 1e3
        account, requests = run["trace"], run["requests"]
        adds_up = account["rows_read"] == account["rows_planned"] + account["beyond_count"] and account["rows_planned"] == requests["completed"] == args.rows
        prompts = run["lengths"]["prompt"]
        print(f"{blocks} blocks of {BLOCK}: emulator {own:.4f}, simulated {plain:.4f} ({own - plain:+.4f}), simulated as an engine does {engine:.4f} ({own - engine:+.4f})")
        print(f"  sends late p99 {late:.3f} ms; prompts asked {prompts['expected']} tokens, counted {prompts['counted']}; "
              f"rows {account['rows_read']} = {account['beyond_count']} beyond --num-prompts + {account['rows_planned']} sent and completed: {'yes' if adds_up else 'NO'}")
        ok &= adds_up and abs(own - plain) < 0.01 and late < 1 and prompts["differing"] == 0
    print("all as it should be" if ok else "not as it should be")
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
