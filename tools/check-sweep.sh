#!/usr/bin/env bash
# Sweeps two configurations of a real llama.cpp server (SmolLM2-135M, CPU), started and stopped by the sweep, and compares them.
#   tools/check-sweep.sh [PATH-TO-tailbound]
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${1:-target/release/tailbound}
data=${TAILBOUND_DATA:-../shared/data}
port=${PORT:-18441}
python=$(tools/llama-server.sh --python)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo '{"one": {"parallel": 1}, "eight": {"parallel": 8}}' > "$work/servers.json"
echo '[{"max_concurrency": 1}, {"max_concurrency": 4}]' > "$work/clients.json"
"$bin" bench sweep serve -o "$work" -e llama --num-runs 2 --serve-params "$work/servers.json" --bench-params "$work/clients.json" --no-fail \
  --serve-cmd "$python tools/llama_server.py $port" --server-url "http://127.0.0.1:$port" \
  --bench-cmd "tailbound bench serve --port $port --model smollm2-135m --tokenizer $data/engines/tokenizer.json --dataset-name random
    --random-input-len 32 --random-output-len 8 --ignore-eos --temperature 0 --num-prompts 12 --metric-percentiles 50 --disable-tqdm
    --extra-body '{\"cache_prompt\": false}'" | tee "$work/table"
if pgrep -f "llama_server.py $port" >/dev/null; then echo "a server is left"; exit 1; fi
"$bin" bench sweep plot "$work/llama" --var-x max_concurrency --curve-by parallel
"$bin" bench sweep plot_pareto "$work/llama" --accelerators 1 --cost-per-accelerator-hour 1
# Two configurations of one framework, compared with intervals: the table has every metric and a sentence, whatever it says.
"$bin" bench compare "one slot=$work/llama/SERVE--one-BENCH--max_concurrency=4" "eight slots=$work/llama/SERVE--eight-BENCH--max_concurrency=4" \
  --primary median_ttft --no-fail | tee "$work/compared"
for line in "saved runs, at concurrency 4" "* P50 TTFT" "Output tokens" "requests are paired"; do
  grep -qF -- "$line" "$work/compared" || { echo "the comparison lacks: $line"; exit 1; }
done
python3 - "$work/llama" <<'PY'
import json, pathlib, sys
summaries = sorted(pathlib.Path(sys.argv[1]).glob("*/summary.json"))
assert len(summaries) == 4, summaries
for path in summaries:
    runs = json.loads(path.read_text())
    assert len(runs) == 2 and all(run["completed"] == 12 and run["failed"] == 0 for run in runs), path
    assert all(run["total_output_tokens"] == 96 for run in runs), path
rate = lambda name: [run["request_throughput"] for run in json.loads((pathlib.Path(sys.argv[1]) / name / "summary.json").read_text())]
print("requests/s of four clients: one slot", rate("SERVE--one-BENCH--max_concurrency=4"), "eight", rate("SERVE--eight-BENCH--max_concurrency=4"))
for name in ("FIGURE.svg", "FIGURE.html", "pareto/PARETO.svg", "pareto/PARETO.html"):
    assert (pathlib.Path(sys.argv[1]) / name).stat().st_size > 1000, name
PY
