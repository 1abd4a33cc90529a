#!/bin/bash
# What the init script of the daemon does
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
"$python" "$here/server.py" --interval 0.1 &
daemon=$!
echo "diamond started, pid $daemon"
wait "$daemon"
status=$?
echo "diamond ended with $status"
exit $status
