#!/usr/bin/env bash
# Measures a short MLPerf Endpoints curve against the emulator, exports it, and has it judged by both official programs and by our own
# checker; then changes one byte of one row and sees it found.
#   tools/check-endpoints-curve.sh [PATH-TO-tailbound]
# A curve to hand in lasts hours; this one lasts a minute. So the official checker must have two things to say against each point, that it
# is short and that whole-run figures count for it, and nothing else. A curve of full length, in virtual time against the same engine
# model, must pass without a word. The accuracy results are made up: the emulator has no model.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${1:-target/release/tailbound}
work=$(mktemp -d)
server=
trap '[ -n "$server" ] && kill "$server" 2>/dev/null && wait "$server" 2>/dev/null; rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check endpoints-submission-cli==1.5.3.0 mlperf-viz==2.0.0

"$bin" emulate --port 0 --step-time 20ms >"$work/emulator.out" 2>"$work/emulator.err" &
server=$!
for _ in $(seq 100); do grep -q listening "$work/emulator.out" && break; sleep 0.1; done
url=$(sed -n 's/^listening on //p' "$work/emulator.out")
[ -n "$url" ] || { cat "$work/emulator.err"; echo "the emulator did not start"; exit 1; }

curve=(bench curve --base-url "$url" --c-min 4 --c-max 36 --dataset-samples 30 --random-input-len 32 --random-output-len 16
       --request-time 330ms --min-window 5s)
"$bin" "${curve[@]}" --dry-run
"$bin" "${curve[@]}" --output-dir "$work/curve" --no-fail
"$bin" verify "$work/curve"

# What only a submitter knows, and made-up accuracy results for the points that need some.
mkdir -p "$work/submission/server" "$work/submission/docs"
echo "How to run it." >"$work/submission/server/README.md"
echo "Notes." >"$work/submission/docs/README.md"
cat >"$work/submission/accuracy.json" <<'JSON'
{"accuracy_scores": [{"dataset_name": "cnn_dailymail", "unit_samples": 13368, "num_repeats": 1, "complete": true,
  "score": {"rouge1": 38.8, "rouge2": 16.0, "rougel": 24.6, "rougelsum": 35.9, "gen_len": 8167644}}]}
JSON
file=$work/submission/submission.yaml
"$bin" export endpoints --template | sed 's/cnn_dailymail/aime25/; s/^accuracy: .*/accuracy:/' >"$file"
python3 -c '
import json, sys
for row in json.load(open(sys.argv[1]))["curve"]["rows"]:
    if row["plan"]["accuracy"]: print("  %s: accuracy.json" % row["folder"])' "$work/curve/result.json" >>"$file"

# judge CURVE STRICT: exports it and has it judged by everybody.
judge() {
  local out=$work/out.$(basename "$1")
  "$bin" export endpoints "$1" --output "$out" --submission "$file" --allow-invalid
  "$bin" check endpoints "$out/ExampleOrg" | tail -n 1
  "$work/venv/bin/mlperf-viz" "$out/ExampleOrg" --strict --export "$work/bundle.json"
  "$work/venv/bin/endpoints-submission-cli" check-submission "$out/ExampleOrg" --strict --json >"$work/official.json" || [ "$2" = short ]
  for run in "$out"/runs/*/*/r*; do
    "$work/venv/bin/endpoints-submission-cli" runs create --path "$run" --dry-run >/dev/null
  done
  python3 tools/endpoints_curve_agrees.py "$work/official.json" "$work/bundle.json" "$1/result.json"
}
judge "$work/curve" short

"$bin" bench curve --virtual --profile llama-3.1-70b-l40s-tp4 --c-min 4 --c-max 36 --dataset-samples 30 --random-input-len 32 \
  --random-output-len 400 --request-time 20s --output-dir "$work/modelled"
"$bin" verify "$work/modelled"
judge "$work/modelled" strict

# One byte of one row of the first point.
python3 - "$work/curve/r4/events.log" <<'PY'
import struct, sys
path = sys.argv[1]
log = bytearray(open(path, "rb").read())
at, rows = 8, 0
while True:
    # Length, checksum, kind: 1 is a row; others are the settings and looks at the server's metrics, which fall anywhere.
    rows += log[at + 8] == 1
    if rows == 60:
        break
    at += 8 + struct.unpack_from("<I", log, at)[0]
log[at + 8 + 12] ^= 1
open(path, "wb").write(log)
PY
if "$bin" verify "$work/curve" >"$work/verified"; then echo "a changed row was not found"; exit 1; fi
cat "$work/verified"
grep -q "^mismatch  r4/events.log: row 60 .*does not match its checksum" "$work/verified"
grep -q "^mismatch  r4/result.json: .* figures do not follow from the rows" "$work/verified"
