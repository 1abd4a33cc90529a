#!/bin/bash
# one worker of the pipeline, as the cluster's entry point starts it
set -u
here=$(cd "$(dirname "$0")" && pwd)
export OMP_NUM_THREADS=1
timeout --kill-after=5 120 "$1" "$here/job.py"
status=$?
echo "worker ended with $status"
exit $status
