#!/usr/bin/env bash
# Runs the README's two bench commands against a real llama.cpp server (SmolLM2-135M, CPU) and checks what came out:
# every request succeeded, and the token counts equal the server's own usage.
#   tools/check-real-engine.sh [PATH-TO-tailbound]
set -euo pipefail
cd "$(dirname "$0")/.."
[ -n "${LLAMA_PORT:-}" ] || exec tools/with-llama.sh "$0" "$@"
bin=${1:-target/release/tailbound}
data=${TAILBOUND_DATA:-../shared/data}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sharegpt=$(ls "$data"/workloads/sharegpt/*.json | head -n 1)
# Left to itself the model now and then ends a chat before its first word, which is a failed request, and rightly so.
common=(--port "$LLAMA_PORT" --model smollm2-135m --dataset-name sharegpt --dataset-path "$sharegpt" --sharegpt-output-len 16 --max-model-len 2048
        --tokenizer "$data/engines/tokenizer.json" --max-concurrency 4 --num-prompts 50 --temperature 0 --ignore-eos --save-result --save-detailed --result-dir "$work" --no-fail)
"$bin" bench serve --backend vllm --endpoint /v1/completions --result-filename completions.json "${common[@]}"
"$bin" bench serve --backend openai --endpoint "/v1/chat/completions" --result-filename chat.json "${common[@]}"
python3 - "$work" <<'PY'
import json, sys
for name in ("completions", "chat"):
    result = json.load(open(f"{sys.argv[1]}/{name}.json"))
    assert result["completed"] == 50 and result["failed"] == 0, (name, result["completed"], result["errors"])
    # The server's usage and an independent count (one token per stream event in llama.cpp) must agree. A character made of
    # several tokens (an emoji) comes as one event.
    for i, (out, gaps, text) in enumerate(zip(result["output_lens"], result["itls"], result["generated_texts"])):
        assert 1 <= out <= 16, (name, i, out)
        held_back = sum(len(c.encode()) - 1 for c in text)
        assert -1 <= out - (len(gaps) + 1) <= 1 + held_back, (name, i, out, len(gaps) + 1, text)
    assert result["total_output_tokens"] == sum(result["output_lens"])
    assert result["total_input_tokens"] == sum(result["input_lens"])
    print(f"{name}: 50 of 50 succeeded, {result['total_input_tokens']} tokens in, {result['total_output_tokens']} out")
PY
