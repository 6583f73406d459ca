#!/usr/bin/env python3
"""Start-up to the first request, report time after the last byte, and resident memory: each against the emulator's own log.

    cargo build --release
    benches/startup.py --tokenizer TOKENIZER.json          # one of about 50,000 entries
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time


class Emulator:
    def __init__(self, tailbound, *flags):
        self.log = pathlib.Path(tempfile.mkdtemp()) / "truth.jsonl"
        self.process = subprocess.Popen(
            [tailbound, "emulate", "--port", "0", "--served-model-name", "m", "--max-num-seqs", "4096", "--max-num-batched-tokens", "1000000",
             "--num-gpu-blocks", "400000", "--truth-log", str(self.log), *flags],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = self.process.stdout.readline().split()[-1]

    def rows(self):
        self.process.terminate()
        self.process.wait()
        return [json.loads(line) for line in open(self.log)]


def bench(tailbound, url, *flags):
    """Runs one bench; returns when it was started (ns), when it had exited, and its largest resident size (MiB)."""
    start = time.monotonic_ns()
    pid = os.spawnvp(os.P_NOWAIT, tailbound, [tailbound, "bench", "serve", "--base-url", url, "--model", "m", "--dataset-name", "random",
                                             "--no-fail", "--disable-tqdm", "--format", "json", *flags])
    _, status, usage = os.wait4(pid, 0)
    assert status == 0, status
    return start, time.monotonic_ns(), usage.ru_maxrss / 1024


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--tokenizer", required=True)
    args.add_argument("--tailbound", default="target/release/tailbound")
    args = args.parse_args()
    null = os.open("/dev/null", os.O_WRONLY)
    stdout = os.dup(1)
    os.dup2(null, 1)  # the benches' own output
    say = lambda text: os.write(stdout, (text + "\n").encode())

    for name, flags in (("without a tokenizer", ["--skip-tokenizer-init"]), ("with the tokenizer", ["--tokenizer", args.tokenizer])):
        times = []
        for i in range(7):
            emulator = Emulator(args.tailbound, "--step-time", "1ms")
            start, _, _ = bench(args.tailbound, emulator.url, "--random-input-len", "128", "--random-output-len", "2", "--num-prompts", "10",
                                "--request-id-prefix", "x-", *flags)
            times.append((min(row["recv"] for row in emulator.rows() if row["id"].startswith("x-")) - start) / 1e6)
        say(f"start to first request at the server, {name}: median {statistics.median(times):.0f} ms  (each: {' '.join(f'{t:.0f}' for t in sorted(times))})")

    times = []
    for _ in range(3):
        emulator = Emulator(args.tailbound, "--step-time", "200us")
        _, end, _ = bench(args.tailbound, emulator.url, "--skip-tokenizer-init", "--random-input-len", "8", "--random-output-len", "1",
                          "--num-prompts", "100000", "--max-concurrency", "64")
        last = max(row["recv"] + row["sent"][-1] for row in emulator.rows() if row.get("sent"))
        times.append((end - last) / 1e6)
    say(f"last byte sent to the end of the program, 100,000 requests: median {statistics.median(times):.0f} ms  (each: {' '.join(f'{t:.0f}' for t in sorted(times))})")

    sizes = []
    for _ in range(3):
        emulator = Emulator(args.tailbound, "--step-time", "20ms", "--data-parallel-size", "16")
        sizes.append(bench(args.tailbound, emulator.url, "--skip-tokenizer-init", "--random-input-len", "128", "--random-output-len", "100",
                           "--num-prompts", "1000", "--max-concurrency", "1000")[2])
        emulator.rows()
    say(f"largest resident size at 1,000 streams: {max(sizes):.1f} MiB")


if __name__ == "__main__":
    main()
