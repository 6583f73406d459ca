#!/usr/bin/env bash
# Runs a command beside a real llama.cpp server (tools/llama-server.sh); the command finds its port in LLAMA_PORT.
#   tools/with-llama.sh COMMAND…
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
port=${PORT:-18432}
log=$(mktemp)
"$here/llama-server.sh" "$port" >"$log" 2>&1 &
server=$!
trap 'kill $server 2>/dev/null || true; wait $server 2>/dev/null || true; rm -f "$log"' EXIT
for _ in $(seq 240); do
  grep -q '^ready' "$log" && break
  kill -0 $server 2>/dev/null || { cat "$log"; echo "the server died"; exit 1; }
  sleep 0.5
done
LLAMA_PORT=$port "$@"
