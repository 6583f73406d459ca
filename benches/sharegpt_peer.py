#!/usr/bin/env python3
"""The same ShareGPT file through `tailbound bench serve` and through vLLM's clients: the same prompts, the same lengths, the same order.

    pip download --no-deps vllm==0.33.0 && unzip vllm-*.whl 'vllm/vllm-rs' 'vllm/benchmarks/*' && chmod +x vllm/vllm-rs
    pip install tokenizers
    cargo build --release
    benches/sharegpt_peer.py --vllm ./vllm --tokenizer TOKENIZER.json FILE.json…

A small server here keeps every request body and answers with one token. Used whole, each file must bring the same multiset of
(prompt, output length) from `tailbound` and from `vllm-rs`. The order of vLLM's Python client is taken from its own `ShareGPTDataset`,
cut out of the wheel and run by itself; `--seed-compat vllm` must send in that order. In multi-turn mode every turn of every
conversation must arrive, each carrying the answers that this server gave before.
"""
import argparse
import ast
import collections
import http.server
import json
import pathlib
import random
import subprocess
import sys
import threading
import types


class Recorder(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.bodies, self.lock = [], threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def take(self):
        with self.lock:
            bodies, self.bodies = self.bodies, []
        return bodies


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, body, kind):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer(json.dumps({"object": "list", "data": [{"id": "m", "root": "m", "object": "model"}]}).encode(), "application/json")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if not self.path.endswith("completions"):
            return self.answer(b"{}", "application/json")
        with self.server.lock:
            # Each answer is unlike all others, so that a history tells whose answers it holds.
            said = f"answer {len(self.server.bodies)}"
            self.server.bodies.append({**body, "answered": said})
        chat = "messages" in body
        choice = {"index": 0, "finish_reason": None, **({"delta": {"content": said}} if chat else {"text": said})}
        last = {**choice, "finish_reason": "stop", **({"delta": {}} if chat else {"text": ""})}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        events = [{"id": "x", "object": "x", "created": 0, "model": "m", "choices": [c]} for c in (choice, last)]
        events.append({"id": "x", "object": "x", "created": 0, "model": "m", "choices": [], "usage": usage})
        stream = b"".join(b"data: " + json.dumps(e).encode() + b"\n\n" for e in events) + b"data: [DONE]\n\n"
        self.answer(stream, "text/event-stream")


def run(command, recorder):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return recorder.take()


def pairs(bodies):
    return [(b["prompt"], b["max_tokens"]) for b in bodies]


def python_client(vllm, path, tokenizer_file, seed):
    """What vLLM's Python client would send, by its own code: (prompt, output length) in order."""
    import tokenizers

    source = (vllm / "benchmarks/datasets/datasets.py").read_text()
    wanted = {"SampleRequest", "BenchmarkDataset", "is_valid_sequence", "ShareGPTDataset"}
    nodes = [n for n in ast.parse(source).body if getattr(n, "name", None) in wanted]
    for node in ast.walk(ast.Module(nodes, [])):  # annotations name types that live elsewhere
        for field in ("annotation", "returns"):
            if getattr(node, field, None) is not None:
                setattr(node, field, None if field == "returns" or isinstance(node, ast.arg) else ast.Constant(None))
    loaded = tokenizers.Tokenizer.from_file(tokenizer_file)
    scope = {"json": json, "random": random, "logger": types.SimpleNamespace(info=lambda *_: None, warning=lambda *_: None)}
    exec("from abc import ABC, abstractmethod\nfrom dataclasses import dataclass\nfrom functools import cache\nfrom copy import deepcopy", scope)
    exec(compile(ast.fix_missing_locations(ast.Module(nodes, [])), "datasets.py", "exec"), scope)
    dataset = scope["ShareGPTDataset"](dataset_path=str(path), random_seed=seed)
    encode = lambda text: types.SimpleNamespace(input_ids=loaded.encode(text).ids)
    samples = dataset.sample(tokenizer=encode, num_requests=10**9, no_oversample=True)
    return [(s.prompt, s.expected_output_len) for s in samples]


def multi_turn(path, ours, recorder, tokenizer_file):
    """Every turn sent, in order, each after the answers given here; returns (conversations, turns)."""
    command = [ours, "bench", "serve", "--base-url", recorder.url, "--model", "m", "--backend", "openai-chat", "--tokenizer", tokenizer_file,
               "--dataset-name", "sharegpt", "--dataset-path", path, "--multi-turn", "--max-concurrency", "8", "--no-fail"]
    bodies = run(command, recorder)
    roles = {"human": "user", "gpt": "assistant", "system": "system", "function_call": "assistant", "observation": "tool"}
    expected = collections.Counter()
    for entry in json.load(open(path)):
        asked = []
        for turn in entry["conversations"]:
            if roles[turn["from"]] == "assistant":
                if any(role != "system" for role, _ in asked):
                    expected[tuple(asked)] += 1
                asked.append(("assistant", None))
            else:
                asked.append((roles[turn["from"]], turn["value"]))
    got = collections.Counter()
    answers = collections.defaultdict(set)
    for body in bodies:
        answers[json.dumps(body["messages"])].add(body["answered"])
    for body in bodies:
        said = [(m["role"], m["content"]) for m in body["messages"]]
        for i, (role, text) in enumerate(said):
            assert role != "assistant" or text in answers[json.dumps(body["messages"][:i])], f"{path}: {text!r} is not what was answered: {said}"
        got[tuple((role, None if role == "assistant" else text) for role, text in said)] += 1
    assert got == expected, f"{path}: {sum((got - expected).values())} sent too many, {sum((expected - got).values())} too few"
    return sum(1 for turns in got.elements() if not any(role == "assistant" for role, _ in turns)), len(bodies)


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--vllm", required=True, type=pathlib.Path, help="the wheel's folder vllm")
    args.add_argument("--tokenizer", required=True)
    args.add_argument("--ours", default="target/release/tailbound")
    args.add_argument("files", nargs="+")
    args = args.parse_args()
    recorder = Recorder()
    shared = ["--base-url", recorder.url, "--model", "m", "--tokenizer", args.tokenizer, "--dataset-name", "sharegpt"]
    for path in args.files:
        whole = [*shared, "--dataset-path", path, "--num-prompts", "100000", "--no-oversample", "--max-concurrency", "8"]
        ours = pairs(run([args.ours, "bench", "serve", *whole, "--no-fail", "--disable-tqdm"], recorder))
        theirs = pairs(run([args.vllm / "vllm-rs", "bench", "serve", *whole, "--disable-tqdm"], recorder))
        same = collections.Counter(ours) == collections.Counter(theirs)
        print(f"{pathlib.Path(path).name}")
        print(f"  whole: {len(ours)} prompts here, {len(theirs)} from vllm-rs; the same prompts and lengths: {'yes' if same else 'NO'}")
        ok = same
        for seed in (0, 42):
            python = python_client(args.vllm, path, args.tokenizer, seed)
            one = [*shared, "--dataset-path", path, "--num-prompts", "100000", "--no-oversample", "--max-concurrency", "1", "--seed", str(seed)]
            mine = pairs(run([args.ours, "bench", "serve", *one, "--seed-compat", "vllm", "--no-fail", "--disable-tqdm"], recorder))
            equal = mine == python
            ok &= equal
            print(f"  --seed-compat vllm --seed {seed}: {len(mine)} prompts in the order of vLLM's Python client: {'yes' if equal else 'NO'}")
        conversations, turns = multi_turn(path, args.ours, recorder, args.tokenizer)
        print(f"  --multi-turn: {conversations} conversations, {turns} turns, each sent once with the answers given before")
        if not ok:
            sys.exit("not as it should be")
    print("all as it should be")


if __name__ == "__main__":
    main()
