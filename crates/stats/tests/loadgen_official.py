#!/usr/bin/env python3
"""Runs the official LoadGen with random settings and compares it with ours.

    python -m venv /tmp/lg && /tmp/lg/bin/pip install mlcommons-loadgen
    cargo build --release -p tailbound-stats --example loadgen_replay
    /tmp/lg/bin/python crates/stats/tests/loadgen_official.py --ours target/release/examples/loadgen_replay -n 200

For every setting the official program runs for a fraction of a second against a system that answers after a random
delay; our program then generates schedule, sample indices and accuracy-log picks from the same settings, scores the
traced samples, rewrites the summary (from the samples, and from the detail log alone) and reports every difference.
Exit code 1 if there is any.
"""
import argparse, heapq, json, os, random, shutil, subprocess, sys, tempfile, threading, time
from multiprocessing import Process

SCENARIOS = ["SingleStream", "MultiStream", "Server", "Offline"]
MODES = ["PerformanceOnly"] * 5 + ["AccuracyOnly", "SubmissionRun", "FindPeakPerformance"]


def random_settings(rng):
    scenario = rng.choice(SCENARIOS)
    mode = rng.choice(MODES)
    if mode == "FindPeakPerformance" and scenario != "Server":
        mode = "PerformanceOnly"
    total = rng.choice([1, 2, 7, 50, 64, 200, 1000])
    s = {
        "scenario": scenario,
        "mode": mode,
        "qsl_total": total,
        "qsl_perf": rng.choice([total, max(1, total // 2), max(1, total // 3)]),
        "qsl_rng_seed": rng.getrandbits(64),
        "sample_index_rng_seed": rng.getrandbits(64),
        "schedule_rng_seed": rng.getrandbits(64),
        "accuracy_log_rng_seed": rng.getrandbits(64),
        "accuracy_log_probability": rng.choice([0.0, 0.0, 0.1, 0.5]),
        "accuracy_log_sampling_target": rng.choice([0, 0, 5, 40]),
        "min_query_count": rng.choice([1, 5, 70, 150, 470]),
        "min_duration_ms": rng.choice([0, 50, 200, 400]),
        "max_query_count": rng.choice([0, 0, 0, 0, 30]),
        "sample_concatenate_permutation": rng.random() < 0.35,
        "use_token_latencies": rng.random() < 0.35,
        "ttft_latency": rng.choice([1, 5, 50, 500]) * 1_000_000,
        "tpot_latency": rng.choice([1, 5, 50]) * 1_000_000,
        "token_modulus": rng.choice([1, 2, 9, 60]),
        "single_stream_expected_latency_ns": rng.uniform(5e5, 4e6),
        "single_stream_target_latency_percentile": rng.choice([0.9, 0.5, 0.99, 0.97]),
        "multi_stream_expected_latency_ns": rng.uniform(1e6, 8e6),
        "multi_stream_target_latency_percentile": rng.choice([0.99, 0.9]),
        "multi_stream_samples_per_query": rng.choice([1, 2, 8, 13]),
        "server_target_qps": round(rng.uniform(50, 800), rng.choice([0, 1, 3])),
        "server_target_latency_ns": rng.choice([2, 10, 100]) * 1_000_000,
        "server_target_latency_percentile": rng.choice([0.99, 0.9, 0.97]),
        "server_coalesce_queries": rng.random() < 0.2,
        "server_max_async_queries": rng.choice([0, 0, 0, 20]),
        "server_find_peak_qps_decimals_of_precision": 0,
        "offline_expected_qps": rng.uniform(50, 2000),
    }
    if mode == "FindPeakPerformance":
        s.update(server_target_qps=100.0, server_target_latency_ns=20_000_000, use_token_latencies=False,
                 server_find_peak_qps_decimals_of_precision=0, min_query_count=40, min_duration_ms=20,
                 max_query_count=0, sample_concatenate_permutation=False, server_max_async_queries=0)
    repeat = rng.random()
    if mode == "PerformanceOnly" and repeat < 0.15:
        s["performance_issue_unique"] = True
    elif mode == "PerformanceOnly" and repeat < 0.3:
        s["performance_issue_same"] = True
        s["performance_issue_same_index"] = rng.randrange(s["qsl_perf"])
    if s["scenario"] == "MultiStream":
        # A query longer than the set makes LoadGen read past its padding.
        s["multi_stream_samples_per_query"] = min(s["multi_stream_samples_per_query"], s["qsl_perf"])
        if mode == "AccuracyOnly" or mode == "SubmissionRun":
            s["qsl_perf"] = s["qsl_total"]
            s["multi_stream_samples_per_query"] = min(s["multi_stream_samples_per_query"], s["qsl_perf"])
    return s


class System:
    """Answers each sample after its own delay, from one timer thread."""

    def __init__(self, lg, s, seed):
        self.lg, self.s, self.rng = lg, s, random.Random(seed)
        self.heap, self.cond, self.n, self.end = [], threading.Condition(), 0, False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def issue(self, samples):
        now, delay = time.monotonic(), self.rng.uniform(0.0003, 0.002)
        slow = self.rng.random() < 0.01
        tokens = self.s["use_token_latencies"]
        with self.cond:
            for q in samples:
                if tokens and self.s["scenario"] != "Offline":
                    self.push(now + delay / 2, "first", q.id, 0)
                self.push(now + delay * (15 if slow else 1), "done", q.id, 2 + q.index % self.s["token_modulus"])
            self.cond.notify()

    def push(self, at, what, ident, tokens):
        self.n += 1
        heapq.heappush(self.heap, (at, self.n, what, ident, tokens))

    def run(self):
        lg = self.lg
        while True:
            with self.cond:
                while not self.end and (not self.heap or self.heap[0][0] > time.monotonic()):
                    self.cond.wait(max(0.0, self.heap[0][0] - time.monotonic()) if self.heap else None)
                if self.end:
                    return
                batch = []
                while self.heap and self.heap[0][0] <= time.monotonic():
                    batch.append(heapq.heappop(self.heap))
            for _, _, what, ident, tokens in batch:
                if what == "first":
                    lg.FirstTokenComplete([lg.QuerySampleResponse(ident, 0, 0)])
                elif self.s["use_token_latencies"]:
                    lg.QuerySamplesComplete([lg.QuerySampleResponse(ident, 0, 0, tokens)])
                else:
                    lg.QuerySamplesComplete([lg.QuerySampleResponse(ident, 0, 0)])

    def stop(self):
        with self.cond:
            self.end = True
            self.cond.notify()
        self.thread.join()


def official(directory, s, seed):
    import mlperf_loadgen as lg

    os.chdir(directory)
    settings = lg.TestSettings()
    for key, value in s.items():
        if key in ("qsl_total", "qsl_perf", "token_modulus"):
            continue
        if key == "scenario":
            value = getattr(lg.TestScenario, value)
        if key == "mode":
            value = getattr(lg.TestMode, value)
        setattr(settings, key, value)
    system = System(lg, s, seed)
    sut = lg.ConstructSUT(system.issue, lambda: None)
    qsl = lg.ConstructQSL(s["qsl_total"], s["qsl_perf"], lambda x: None, lambda x: None)
    output = lg.LogOutputSettings()
    output.outdir = directory
    output.copy_summary_to_stdout = False
    log = lg.LogSettings()
    log.log_output = output
    log.enable_trace = True
    lg.StartTestWithLogSettings(sut, qsl, settings, log)
    system.stop()
    lg.DestroyQSL(qsl)
    lg.DestroySUT(sut)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ours", required=True, help="the example loadgen_replay, built")
    parser.add_argument("-n", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="keep the folders of runs that differ")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    failed = samples = skipped = 0
    kinds = {}
    for i in range(args.n):
        s = random_settings(rng)
        directory = tempfile.mkdtemp(prefix=f"loadgen-{i}-")
        with open(os.path.join(directory, "settings.json"), "w") as f:
            json.dump(s, f)
        # A process of its own: LoadGen keeps state, and asserts where it does not like a setting.
        process = Process(target=official, args=(directory, s, i))
        process.start()
        process.join(60)
        if process.is_alive() or process.exitcode != 0:
            process.kill()
            print(f"{i}: the official program ended with {process.exitcode}: {json.dumps(s)}", file=sys.stderr)
            skipped += 1
            shutil.rmtree(directory)
            continue
        kind = f"{s['scenario']} {s['mode']}"
        kinds[kind] = kinds.get(kind, 0) + 1
        done = subprocess.run([args.ours, directory], capture_output=True, text=True)
        try:
            found = json.loads(done.stdout)
        except ValueError:
            found = {"samples": 0, "differences": [done.stderr.strip()]}
        samples += found["samples"]
        if found["differences"]:
            failed += 1
            print(f"{i}: {kind}: {json.dumps(s)}\n   {directory}", file=sys.stderr)
            for d in found["differences"][:6]:
                print("   " + d, file=sys.stderr)
        if not (found["differences"] and args.keep):
            shutil.rmtree(directory)
    for kind in sorted(kinds):
        print(f"{kinds[kind]:4} {kind}")
    print(f"{args.n} settings, {samples} samples compared, {failed} runs differ, {skipped} the official program refused")
    sys.exit(1 if failed or skipped > args.n // 10 else 0)


if __name__ == "__main__":
    main()
