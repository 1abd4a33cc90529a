#!/bin/bash
# The worker of a cluster; it answers for its exit status
python=$1
cd "$(dirname "$0")" || exit 1
export OMP_NUM_THREADS=1
"$python" worker.py
status=$?
echo "worker ended with $status"
exit $status
