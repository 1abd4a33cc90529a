#!/bin/bash
# Serves the model, and replaces the server for each new context length, as a process manager does
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
state=$(mktemp -d) || exit 1
trap 'rm -rf "$state"' EXIT
mkfifo "$state/ready"
exec 3<> "$state/ready"
port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
STOP_AT=$(($(date +%s) + 44))
export STOP_AT
for length in 256 320 384 448 512 576 640; do
  "$python" "$here/api_server.py" "$port" "$state" "$length" &
  server=$!
  read -r -t 25 -u 3 _ || exit 1
  "$python" "$here/client.py" "$port" 3.3 || exit 1
  kill -KILL "$server"
  wait "$server" 2> /dev/null
  echo "context of $length: server stopped"
done
