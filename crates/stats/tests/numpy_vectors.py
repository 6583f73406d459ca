#!/usr/bin/env python3
"""Makes tests/fixtures/numpy.json: random samples and random runs, with what numpy and `vllm bench serve` 0.33 make of them.

    python3 numpy_vectors.py [--vllm path/to/vllm/benchmarks/serve.py] > fixtures/numpy.json

The metrics of a run are computed here by an implementation of our own, over numpy. With --vllm, the function `calculate_metrics`
of that file is run on the same rows too, and the script fails unless both agree; none of its code enters the fixture.
Needs numpy. All times of the rows are integer nanoseconds.
"""

import argparse
import ast
import contextlib
import io
import json
import sys
from types import SimpleNamespace

import numpy as np

PERCENTILES = [25.0, 50.0, 90.0, 95.0, 99.0, 99.9]
SECOND = 1_000_000_000


def random_run(rng, name, n, rate, objectives, *, fail=0.0, one_token=0.0, bundle=1, usage=True, step_ms=20.0):
    now, rows = 5 * SECOND, []
    start = now
    for _ in range(n):
        now += int(rng.exponential(1 / rate) * SECOND)
        released = now + int(rng.exponential(0.002) * SECOND)
        write = released + int(rng.integers(1_000, 400_000))
        at = write + int(rng.lognormal(-2.5, 0.6) * SECOND)
        events = []
        total = 1 if rng.random() < one_token else int(rng.integers(2, 40))
        left = total
        while left > 0:
            k = min(left, int(rng.integers(1, bundle + 1)))
            events.append([at, k])
            left -= k
            at += int(rng.gamma(4.0, step_ms / 4.0) * 1e6) + 1
        ok = bool(rng.random() >= fail)
        rows.append({
            "ok": ok,
            "scheduled": now,
            "released": released,
            "write": write,
            "events": events if ok else events[: len(events) // 2],
            "usage": total if usage else None,
            "recount": total + 1 if not usage else None,
            "prompt": int(rng.integers(4, 500)),
        })
    last = max((r["events"][-1][0] for r in rows if r["events"]), default=now)
    return {"name": name, "start": start, "end": last + 1_234_567, "objectives": objectives, "rows": rows}


def metrics(run):
    """The definitions of reference 1.5, written out anew."""
    ok = [r for r in run["rows"] if r["ok"]]
    seconds = (run["end"] - run["start"]) / SECOND
    lengths = [r["usage"] or r["recount"] for r in ok]
    ttft = [(r["events"][0][0] - r["write"]) / SECOND for r in ok]
    e2el = [(r["events"][-1][0] - r["write"]) / SECOND for r in ok]
    tpot_or_zero = [(e - t) / (n - 1) if n > 1 else 0.0 for e, t, n in zip(e2el, ttft, lengths)]
    tpot = [v for v, n in zip(tpot_or_zero, lengths) if n > 1]
    itl = [(b[0] - a[0]) / SECOND for r in ok for a, b in zip(r["events"], r["events"][1:])]
    limits = {k: v / 1000 for k, v in run["objectives"].items()}
    per_request = [{"ttft": a, "tpot": b, "e2el": c} for a, b, c in zip(ttft, tpot_or_zero, e2el)]
    good = sum(all(values[k] <= limit for k, limit in limits.items()) for values in per_request) if limits else 0
    tokens_in = sum(r["prompt"] for r in ok)
    out = {
        "completed": len(ok),
        "failed": len(run["rows"]) - len(ok),
        "total_input": tokens_in,
        "total_output": sum(lengths),
        "request_throughput": len(ok) / seconds,
        "request_goodput": good / seconds,
        "output_throughput": sum(lengths) / seconds,
        "total_token_throughput": (tokens_in + sum(lengths)) / seconds,
    }
    for name, values in (("ttft", ttft), ("tpot", tpot), ("itl", itl), ("e2el", e2el)):
        values = values or [0]
        out[f"mean_{name}_ms"] = float(np.mean(values)) * 1000
        out[f"median_{name}_ms"] = float(np.median(values)) * 1000
        out[f"std_{name}_ms"] = float(np.std(values)) * 1000
        out[f"percentiles_{name}_ms"] = [float(np.percentile(values, p)) * 1000 for p in PERCENTILES]
    # Calendar seconds from the first successful start.
    events, requests = {}, {}
    if ok:
        first = min(r["write"] for r in ok)
        for r in ok:
            for at, _ in r["events"]:
                s = (at - first) // SECOND
                events[s] = events.get(s, 0) + 1
            for s in range((r["write"] - first) // SECOND, (r["events"][-1][0] - first) // SECOND + 1):
                requests[s] = requests.get(s, 0) + 1
    out["max_output_tokens_per_s"] = float(max(events.values(), default=0))
    out["max_concurrent_requests"] = max(requests.values(), default=0)
    return out


def by_vllm(path, run):
    tree = ast.parse(open(path).read())
    wanted = {"calculate_metrics", "BenchmarkMetrics"}
    body = [node for node in tree.body if getattr(node, "name", None) in wanted]
    module = ast.Module(body=body, type_ignores=[])
    import dataclasses
    import warnings
    scope = {
        "np": np, "warnings": warnings, "dataclass": dataclasses.dataclass, "MILLISECONDS_TO_SECONDS_CONVERSION": 1000,
        "TERM_PLOTLIB_AVAILABLE": False, "SampleRequest": object, "RequestFuncOutput": object, "TokenizerLike": object,
    }
    exec(compile(module, path, "exec"), scope)
    outputs = []
    for r in run["rows"]:
        at = [e[0] for e in r["events"]]
        outputs.append(SimpleNamespace(
            success=r["ok"], output_tokens=r["usage"] or 0, prompt_len=r["prompt"], input_audio_duration=0.0, error="",
            generated_text="x" * (r["recount"] or 0), start_time=r["write"] / SECOND,
            ttft=(at[0] - r["write"]) / SECOND if at else 0.0, latency=(at[-1] - r["write"]) / SECOND if at else 0.0,
            itl=[(b - a) / SECOND for a, b in zip(at, at[1:])],
        ))
    tokenizer = lambda text, add_special_tokens: SimpleNamespace(input_ids=list(text))  # noqa: E731
    seconds = (run["end"] - run["start"]) / SECOND
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, _ = scope["calculate_metrics"]([], outputs, seconds, tokenizer, PERCENTILES, run["objectives"])
    out = {k: getattr(theirs, k) for k in metrics(run)}
    return {k: [v for _, v in x] if isinstance(x, list) else x for k, x in out.items()}


def samples(rng):
    shapes = [("one", 1), ("two", 2), ("three", 3), ("ten", 10), ("many", 257)]
    for name, n in shapes:
        # Nanoseconds, rounded so that the fixture stays small; ties included.
        values = np.round(rng.lognormal(3.0, 1.0, n), 1) * 1e6
        yield {
            "name": name,
            "values": [float(v) for v in values],
            "mean": float(np.mean(values)),
            "std": float(np.std(values)),
            "linear": [float(np.percentile(values, p)) for p in PERCENTILES],
            "nearest_rank": [float(np.percentile(values, p, method="inverted_cdf")) for p in PERCENTILES],
        }


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--vllm", help="vllm/benchmarks/serve.py of version 0.33.0")
    arguments = arguments.parse_args()
    rng = np.random.default_rng(20261130)
    all_three = {"ttft": 120.0, "tpot": 22.0, "e2el": 900.0}
    runs = [
        random_run(rng, "plain", 60, 10, all_three),
        random_run(rng, "failures and bundles", 60, 25, {"ttft": 90.0}, fail=0.2, bundle=4),
        random_run(rng, "one-token answers among others", 40, 15, {"tpot": 20.0}, one_token=0.4),
        random_run(rng, "only one-token answers", 8, 5, {"tpot": 1.0, "e2el": 70.0}, one_token=1.0),
        random_run(rng, "recounted by a tokenizer", 20, 8, {}, usage=False),
        random_run(rng, "a single request", 1, 1, all_three),
        random_run(rng, "nothing completed", 5, 10, all_three, fail=1.0),
        random_run(rng, "long answers at once", 20, 1e9, {"e2el": 4000.0}, step_ms=250.0),
    ]
    for run in runs:
        run["expected"] = metrics(run)
        if arguments.vllm:
            theirs = by_vllm(arguments.vllm, run)
            for key, ours in run["expected"].items():
                if not np.allclose(ours, theirs[key], rtol=1e-9, atol=1e-9):
                    sys.exit(f"{run['name']}: {key}: ours {ours}, vLLM's {theirs[key]}")
            print(f"{run['name']}: vLLM's own calculate_metrics agrees on {len(theirs)} figures", file=sys.stderr)
    out = {"numpy": np.__version__, "percentiles": PERCENTILES, "samples": list(samples(rng)), "runs": runs}
    json.dump(out, sys.stdout, separators=(",", ":"))
    print()


main()
