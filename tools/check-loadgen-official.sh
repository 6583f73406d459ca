#!/usr/bin/env bash
# The official LoadGen, from the package registry, beside ours over random settings: schedules, samples, picks and summaries must agree.
#   tools/check-loadgen-official.sh [SETTINGS] [SEED]
set -euo pipefail
cd "$(dirname "$0")/.."
venv=target/loadgen-venv
if [ ! -x "$venv/bin/python" ] || ! "$venv/bin/python" -c 'import mlperf_loadgen' 2>/dev/null; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check mlcommons-loadgen==6.0.17 >&2
fi
cargo build --quiet --locked -p tailbound-stats --example loadgen_replay
"$venv/bin/python" crates/stats/tests/loadgen_official.py --ours target/debug/examples/loadgen_replay -n "${1:-20}" --seed "${2:-1}"
