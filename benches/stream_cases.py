#!/usr/bin/env python3
"""Plays the stream conformance suite to benchmark clients and counts how many cases each reads right.

    cargo run --release -p tailbound-wire --example play_cases -- 18431 &
    python3 benches/stream_cases.py --url http://127.0.0.1:18431 --tokenizer DIR \
        --client tailbound=target/release/tailbound --client vllm-rs=PATH/vllm-rs > benches/stream_cases.md

Every client gets the same flags of `bench serve`, one request a case, and is judged by its own detailed JSON: did it succeed,
TTFT within 90 ms, number of gaps, the last token's time within 120 ms, output tokens, text. A failure needs only to be one.
A case that is not read right is played again, up to three times in all for every client alike: on a busy machine the player is late too.
"""

import argparse
import concurrent.futures
import json
import os
import subprocess
import tempfile
import urllib.request

BACKENDS = {"Completions": "openai", "Chat": "openai-chat", "Responses": "openai-responses"}


def run(binary, case, args, folder, prompts):
    name = case["name"] + ".json"
    command = [
        *binary.split(), "bench", "serve", "--backend", BACKENDS[case["api"]], "--base-url", args.url,
        "--endpoint", case["path"], "--model", case["name"], "--tokenizer", args.tokenizer,
        "--dataset-name", "custom", "--dataset-path", prompts, "--custom-output-len", "8", "--skip-chat-template",
        "--num-prompts", "1", "--num-warmups", "0", "--disable-tqdm",
        "--save-result", "--save-detailed", "--result-dir", folder, "--result-filename", name,
    ]
    if case["choices"] > 1:
        command += ["--extra-body", json.dumps({"n": case["choices"]})]
    path = os.path.join(folder, name)
    if os.path.exists(path):
        os.remove(path)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return None, "hangs"
    if not os.path.exists(path):
        return None, "no result: " + (done.stderr.strip().splitlines() or ["?"])[-1][-80:]
    with open(path) as file:
        return json.load(file), ""


def judge(case, result, why):
    """What is wrong with the client's reading; empty if nothing is."""
    if result is None:
        # A client that refuses to write a result for a failed request has not called it a success.
        return [] if not case["ok"] and why.startswith("no result") else [why]
    ok = result["completed"] == 1
    if ok != case["ok"]:
        return ["success" if ok else "failed: " + (result.get("errors") or ["?"])[0].strip().splitlines()[-1][:60]]
    if not ok:
        return []
    wrong = []
    ttft, gaps = result["ttfts"][0] * 1e3, len(result["itls"][0])
    if abs(ttft - case["ttft_ms"]) > 90:
        wrong.append(f"TTFT {ttft:.0f} for {case['ttft_ms']} ms")
    if gaps != case["itl"]:
        wrong.append(f"{gaps} gaps for {case['itl']}")
    last = ttft + sum(result["itls"][0]) * 1e3
    if abs(last - case["last_ms"]) > 120:
        wrong.append(f"E2E {last:.0f} for {case['last_ms']} ms")
    if result["output_lens"][0] != case["tokens"]:
        wrong.append(f"{result['output_lens'][0]} tokens for {case['tokens']}")
    text = result["generated_texts"][0]
    if text != case["text"]:
        wrong.append(f"text {text[:20]!r} for {case['text'][:20]!r}")
    return wrong


def read(binary, case, args, folder, prompts):
    for _ in range(3):
        wrong = judge(case, *run(binary, case, args, folder, prompts))
        if not wrong:
            break
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--client", action="append", required=True, metavar="NAME=BINARY")
    parser.add_argument("--jobs", type=int, default=4)
    args = parser.parse_args()
    with urllib.request.urlopen(args.url + "/cases") as reply:
        cases = [json.loads(line) for line in reply]
    cases = [case for case in cases if case["stream"] and case["api"] in BACKENDS]
    clients = dict(client.split("=", 1) for client in args.client)
    readings = {}
    with tempfile.TemporaryDirectory() as folder:
        prompts = os.path.join(folder, "prompts.jsonl")
        with open(prompts, "w") as file:
            file.write('{"prompt": "say four words"}\n')
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            for client, binary in clients.items():
                own = os.path.join(folder, client)
                os.mkdir(own)
                jobs = [pool.submit(read, binary, case, args, own, prompts) for case in cases]
                readings[client] = [job.result() for job in jobs]
    print("# The stream conformance suite, client by client\n")
    print("How each client reads every streamed case of the suite (`crates/wire/src/cases`), by its own JSON; the command is at the")
    print("head of `benches/stream_cases.py`. ✓ is right, else what it says instead.\n")
    published = [i for i, case in enumerate(cases) if case["number"] <= 25]
    print("| client | the 25 published cases | all", len(cases), "|")
    print("|---|---|---|")
    for client, reading in readings.items():
        right = [not wrong for wrong in reading]
        print(f"| {client} | {sum(right[i] for i in published)} | {sum(right)} |")
    print("\n| case | what is special | truth |", " | ".join(clients), "|")
    print("|---|---|---|" + "---|" * len(clients))
    for i, case in enumerate(cases):
        truth = f"{case['ttft_ms']} ms, {case['itl']} gaps, {case['tokens']} tokens" if case["ok"] else f"failed ({case['fault']})"
        cells = ["; ".join(readings[client][i]).replace("|", "\\|").replace("\n", " ") or "✓" for client in clients]
        print(f"| {case['name']} | {case['about'].replace('|', chr(92) + '|')} | {truth} |", " | ".join(cells), "|")


main()
