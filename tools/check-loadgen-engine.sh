#!/usr/bin/env bash
# LoadGen's four scenarios over HTTP against a real llama.cpp server: each must be VALID and judged again the same, and an accuracy run
# must log every sample. Short runs: percentiles are lowered where early stopping would ask for hundreds of queries.
#   tools/check-loadgen-engine.sh [PATH-TO-tailbound]
set -euo pipefail
cd "$(dirname "$0")/.."
[ -n "${LLAMA_PORT:-}" ] || exec tools/with-llama.sh "$0" "$@"
bin=${1:-target/release/tailbound}
data=${TAILBOUND_DATA:-../shared/data}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
common=(--port "$LLAMA_PORT" --model smollm2-135m --dataset-name sample --num-samples 8 --output-len 6 --tokenizer "$data/engines/tokenizer.json" --quiet)

test_run() { # NAME FLAGS…
  local name=$1; shift
  "$bin" bench loadgen run "${common[@]}" --output-dir "$work/$name" "$@" >"$work/$name.txt" 2>"$work/$name.err" \
    || { echo "$name: exit code $?"; cat "$work/$name.txt" "$work/$name.err"; exit 1; }
  "$bin" bench loadgen verdict "$work/$name" >"$work/$name.again" 2>/dev/null || { echo "$name: judged again: exit code $?"; exit 1; }
  # The log's six digits leave some rates' last one open.
  diff <(grep -v 'loadgen overhead\|per second' "$work/$name/mlperf_log_summary.txt") <(grep -v 'loadgen overhead\|per second' "$work/$name.again")
  printf '%-22s %s\n' "$name" "$(grep -E '^Result is|^[0-9.]+th percentile latency|^Completed samples|^Samples per' "$work/$name.txt" | head -2 | tr -s ' ' | paste -sd' ' || true)"
}
test_run SingleStream --scenario SingleStream --set target_latency=20 --set min_query_count=70 --set min_duration=1000
test_run MultiStream --scenario MultiStream --set target_latency=50 --set samples_per_query=2 --set target_latency_percentile=50 \
  --set min_query_count=20 --set min_duration=1000
test_run Server --scenario Server --set target_qps=4 --set target_latency=20000 --set target_latency_percentile=90 \
  --set min_query_count=50 --set min_duration=5000
test_run Offline --scenario Offline --set target_qps=4 --set min_query_count=24 --set min_duration=500
test_run Server-tokens --scenario Server --set target_qps=4 --set use_token_latencies=1 --set ttft_latency=20000 --set tpot_latency=5000 \
  --set target_latency_percentile=90 --set min_query_count=50 --set min_duration=5000 --backend openai-chat
test_run accuracy --scenario Server --mode accuracy --set target_qps=8 --set use_token_latencies=1 --ignore-eos
python3 - "$work/accuracy/mlperf_log_accuracy.json" <<'PY'
import json, sys
answers = json.load(open(sys.argv[1]))
assert sorted(a["qsl_idx"] for a in answers) == list(range(8)), answers
for a in answers:
    ids = len(a["data"]) // 8  # a token id is four bytes
    assert a["token_count"] == 6 and ids >= 1 and a["data"].startswith(a["token_data"]), a
print("accuracy: 8 of 8 answers logged, their token ids", [len(a["data"]) // 8 for a in answers])
PY
