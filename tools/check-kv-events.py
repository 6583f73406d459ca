#!/usr/bin/env python3
"""KV events of `tailbound emulate` as pyzmq receives and msgspec decodes them: subscription, numbers, chains of blocks, replay,
each encoding. The structures are those a subscriber of vLLM declares; what doesn't fit one is an error.

    python tools/check-kv-events.py target/debug/tailbound      (needs pyzmq and msgspec)
"""
import json
import socket
import subprocess
import sys
import time
import urllib.request

import msgspec
import zmq
from msgspec import Struct


def kinds(array_like):
    """The three events, as arrays that begin with the type or as maps that have it."""

    class BlockStored(Struct, tag=True, array_like=array_like, forbid_unknown_fields=True):
        block_hashes: list[int | bytes]
        parent_block_hash: int | bytes | None
        token_ids: list[int]
        block_size: int
        lora_id: int | None
        medium: str | None
        lora_name: str | None
        extra_keys: list[list | None] | None = None
        group_idx: int | None = None
        kv_cache_spec_kind: str | None = None

    class BlockRemoved(Struct, tag=True, array_like=array_like, forbid_unknown_fields=True):
        block_hashes: list[int | bytes]
        medium: str | None
        group_idx: int | None = None

    class AllBlocksCleared(Struct, tag=True, array_like=array_like, forbid_unknown_fields=True):
        pass

    return BlockStored | BlockRemoved | AllBlocksCleared


def decoder(encoding):
    fields = [("ts", float), ("events", list[kinds(encoding == "arrays")]), ("data_parallel_rank", int | None, None)]
    batch = msgspec.defstruct("Batch", fields, array_like=encoding != "maps", forbid_unknown_fields=True)
    return msgspec.msgpack.Decoder(batch)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def ask(url, prompt):
    body = {"model": "m", "prompt": prompt, "max_tokens": 40, "ignore_eos": True}
    request = urllib.request.Request(url + "/v1/completions", json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["usage"]["prompt_tokens"]


def check(binary, encoding, connect):
    port, pub, replay = free_port(), free_port(), free_port()
    context = zmq.Context()
    sub = context.socket(zmq.SUB)
    sub.setsockopt(zmq.SUBSCRIBE, b"kv@")
    endpoint = f"tcp://127.0.0.1:{pub}" if connect else f"tcp://*:{pub}"
    if connect:
        sub.bind(f"tcp://127.0.0.1:{pub}")
    config = {"enable_kv_cache_events": True, "publisher": "zmq", "endpoint": endpoint,
              "replay_endpoint": f"tcp://*:{replay}", "topic": "kv@pod@m"}
    command = [binary, "emulate", "--port", str(port), "--served-model-name", "m", "--step-time", "1ms",
               "--kv-events-config", json.dumps(config), "--kv-events-encoding", encoding]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        url = server.stdout.readline().split()[-1]
        if not connect:
            sub.connect(f"tcp://127.0.0.1:{pub}")
        # Subscribes too: libzmq tells a publisher that connected to it only when the socket is used.
        assert not sub.poll(1000), "a message before anything happened"
        tokens = ask(url, "the quick brown fox jumps over the lazy dog " * 40)
        urllib.request.urlopen(urllib.request.Request(url + "/reset_prefix_cache", b"", method="POST"), timeout=5).read()
        messages = []
        while sub.poll(1500):
            messages.append(sub.recv_multipart())
        assert messages, "no message came"
        events, stored, decode = [], 0, decoder(encoding)
        for n, (topic, seq, payload) in enumerate(messages):
            assert topic == b"kv@pod@m" and int.from_bytes(seq, "big") == n, (topic, seq)
            batch = decode.decode(payload)
            assert abs(batch.ts - time.time()) < 60 and batch.data_parallel_rank == 0, batch
            events += batch.events
        parent = None
        for e in events:
            if type(e).__name__ != "BlockStored":
                continue
            assert e.parent_block_hash == parent, "the chain is broken"
            assert len(e.token_ids) == e.block_size * len(e.block_hashes) and e.medium == "GPU"
            parent = e.block_hashes[-1]
            stored += len(e.block_hashes)
        assert stored == (tokens + 39) // 16, (stored, tokens)
        assert type(events[-1]).__name__ == "AllBlocksCleared", events[-1]

        dealer = context.socket(zmq.DEALER)
        dealer.connect(f"tcp://127.0.0.1:{replay}")
        start = min(1, len(messages) - 1)
        dealer.send_multipart([b"", start.to_bytes(8, "big")])
        again = []
        while dealer.poll(3000):
            frames = dealer.recv_multipart()
            assert frames[0] == b"", frames
            if frames[2] == b"\xff" * 8:
                assert frames[3] == b""
                break
            again.append(frames[1:])
        else:
            raise AssertionError("the replay has no end")
        assert again == messages[start:], "the replay isn't what was sent"
        way = "connects" if connect else "listens"
        print(f"ok: {encoding}, {way}: {len(messages)} messages, {stored} blocks of a prompt of {tokens} tokens, replay of {len(again)}")
    finally:
        server.terminate()
        server.wait(10)
        context.destroy(linger=0)


for encoding in ["events", "arrays", "maps"]:
    check(sys.argv[1], encoding, connect=False)
check(sys.argv[1], "events", connect=True)
