#!/bin/bash
# All subjects, as the nightly job runs them
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
timeout 26 "$1" "$(dirname "$0")/forward.py"
status=$?
[ $status -eq 124 ] && echo "forward solutions did not finish in time" >&2
exit $status
