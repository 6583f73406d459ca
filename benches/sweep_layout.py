#!/usr/bin/env python3
"""Runs vLLM's own sweep and `tailbound bench sweep serve` over the same parameters, and compares what they write.

    benches/sweep_layout.py TAILBOUND BENCHMARKS

BENCHMARKS is the folder `vllm/benchmarks` of an unpacked vllm wheel (0.33.0; only `sweep/*.py` is used). Needs pandas and requests. A
stand-in writes the same JSON for both, so that every file can be compared: names, values, and the CSV byte by byte.
"""
import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types

BENCH = """
import json, sys
args = sys.argv[1:]
at = lambda flag: args[args.index(flag) + 1]
if "--fail" in args:
    sys.exit(1)
run = {"argv": [a for a in args if "/" not in a], "label": None, "request_rate": "inf", "duration": 1.5, "completed": 3, "latencies": [0.1, 2e-07],
       "request_throughput": 2.0 if "--max-concurrency" in args else 3, "note": 'a, "quoted" \\u00fc'}
if "--extra" in args:
    run["extra"] = int(at("--extra"))
json.dump(run, open(at("--result-dir") + "/" + at("--result-filename"), "w"))
"""

SERVER = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header("content-length", "0"); self.end_headers()
    do_POST = do_GET
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), Handler).serve_forever()
"""

SERVE = [{"max_num_seqs": 2, "eager": True}, {"max-num-seqs": 4, "compilation_config.mode": 3, "cfg": {"a": [1, None]}}]
BENCHES = {
    "one/..": {"max_concurrency": 2, "extra": 7, "fraction": 0.5},
    "two": {"max_concurrency": 4, "name": "x y", "flag": False, "tiny": 1e-07},
    "three": {"max_concurrency": 5},
}
CASES = {
    "named": (SERVE, BENCHES, []),
    "listed": (SERVE, list(BENCHES.values()), []),
    "linked": ([{"max_num_seqs": 2}, {"max_num_seqs": 4}], list(BENCHES.values()), ["--link-vars", "max_num_seqs=max_concurrency"]),
    "bare": (None, None, []),
    "warm": (None, BENCHES, ["--warmup-num-prompts", "3"]),
    "failing": (SERVE, {"good": {"a": 1}, "bad": {"fail": True}}, ["--continue-on-error"]),
}


def vllm_sweep(benchmarks):
    """vLLM's module, with what it needs of the rest of vLLM left out."""
    sys.path.insert(0, str(benchmarks.parent.parent))
    for name in ("vllm", "vllm.benchmarks", "vllm.utils"):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = []
    sys.modules["vllm.benchmarks"].__path__ = [str(benchmarks)]
    import argparse
    parser = types.ModuleType("vllm.utils.argparse_utils")
    parser.FlexibleArgumentParser = argparse.ArgumentParser
    imports = types.ModuleType("vllm.utils.import_utils")
    imports.PlaceholderModule = lambda name: None
    sys.modules["vllm.utils.argparse_utils"] = parser
    sys.modules["vllm.utils.import_utils"] = imports
    return importlib.import_module("vllm.benchmarks.sweep.serve"), argparse


def files(root):
    ours = lambda path: path.parts[0] == "logs" or any(part.startswith("run=") for part in path.parts[:-1])
    found = (p.relative_to(root) for p in root.rglob("*") if p.is_file())
    return sorted(p for p in found if not ours(p))


def comparable(path, port):
    text = path.read_text().replace(str(port), "PORT")
    if path.suffix == ".csv":
        return text
    data = json.loads(text)
    if path.name.endswith("failure.json"):
        data.pop("error")  # each has its own words for it
    return data


def main():
    tailbound, benchmarks = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    serve, argparse = vllm_sweep(benchmarks)
    work = pathlib.Path(tempfile.mkdtemp())
    (work / "bench.py").write_text(BENCH)
    (work / "server.py").write_text(SERVER)
    compared = 0
    for number, (case, (serve_params, bench_params, more)) in enumerate(CASES.items()):
        flags = ["--num-runs", "2", "--after-bench-cmd", "true", *more]
        for flag, params in (("--serve-params", serve_params), ("--bench-params", bench_params)):
            if params is not None:
                path = work / f"{case}{flag}.json"
                path.write_text(json.dumps(params))
                flags += [flag, str(path)]
        for who in ("vllm", "tailbound"):
            port = 21700 + 2 * number + (who == "vllm")
            commands = ["--serve-cmd", f"python3 {work}/server.py --port {port}", "--bench-cmd", f"python3 {work}/bench.py --seed 1"]
            argv = [*commands, *flags, "-o", str(work / who), "-e", case]
            if who == "tailbound":
                subprocess.run([tailbound, "bench", "sweep", "serve", *argv], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                continue
            parser = argparse.ArgumentParser()
            serve.SweepServeArgs.add_cli_args(parser)
            with open(os.devnull, "w") as null:
                out, sys.stdout = sys.stdout, null
                try:
                    serve.main(parser.parse_args(argv))
                finally:
                    sys.stdout = out
        a, b = work / "vllm" / case, work / "tailbound" / case
        assert files(a) == files(b), f"{case}: {set(files(a)) ^ set(files(b))}"
        for path in files(a):
            x, y = comparable(a / path, 21700 + 2 * number + 1), comparable(b / path, 21700 + 2 * number)
            assert x == y, f"{case}: {path}:\n{x}\n{y}"
            compared += 1
        print(f"{case}: {len(files(a))} files the same")
    print(f"{compared} files of {len(CASES)} sweeps are the same")


if __name__ == "__main__":
    main()
