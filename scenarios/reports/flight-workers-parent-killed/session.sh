#!/bin/bash
# The integration tests: a run that hangs is killed
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
export MLODA_SESSION_END=$(( $(date +%s) + 30 ))
for attempt in 1 2 3 4 5; do
    "$python" "$here/mloda_run.py" "test_$attempt" &
    run=$!
    sleep 4.5
    echo "test_$attempt hangs, killing $run"
    kill -KILL "$run"
    wait "$run" 2>/dev/null
done
echo "waiting for the report"
while [ "$(date +%s)" -lt $(( MLODA_SESSION_END + 2 )) ]; do
    sleep 0.5
done
echo "session over"
exit 0
