#!/bin/bash
# The server, and a benchmark against it with a profile of the decode steps
python=$1
here=$(cd "$(dirname "$0")" && pwd)
export OMP_NUM_THREADS=1
mkfifo ready || exit 2
"$python" "$here/api_server.py" --ready ready --max-num-seqs 24 &
server=$!
read -r port < ready
"$python" "$here/bench_client.py" --port "$port" --seconds 22
status=$?
wait "$server"
rm -f ready
exit $status
