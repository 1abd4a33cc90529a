#!/bin/bash
# Serves the network, and has a client segment some scans
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
mkfifo port || exit 1
"$python" "$here/server.py" port &
server=$!
read -r number < port
"$python" "$here/client.py" "$number"
status=$?
kill -TERM "$server"
wait "$server"
echo "client ended with $status"
exit "$status"
