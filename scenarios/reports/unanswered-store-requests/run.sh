#!/bin/bash
# A prefill node: the sidecar with the cache, and the worker of the engine
python=$1
here=$(dirname "$0")
export OMP_NUM_THREADS=1
mkfifo ready
"$python" "$here/sidecar.py" ready &
sidecar=$!
read -r port < ready
"$python" "$here/worker.py" "$port"
status=$?
wait "$sidecar"
exit $status
