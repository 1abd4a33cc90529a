#!/bin/bash
# Two ranks of the engine on this node, after the checkpoint was made
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
export OMP_NUM_THREADS=1 MASTER_ADDR=127.0.0.1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 STREAMER_MEMORY_LIMIT=$((16 << 20))
MASTER_PORT=$("$python" -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
export MASTER_PORT
"$python" "$here/make_checkpoint.py" "$folder" || exit 1
RANK=1 LOCAL_RANK=1 "$python" "$here/engine.py" "$folder" &
RANK=0 LOCAL_RANK=0 "$python" "$here/engine.py" "$folder"
status=$?
wait $! || status=1
exit $status
