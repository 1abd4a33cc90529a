#!/bin/bash
# Trials one after the other. A trial that takes longer than its time is killed, and the next one starts.
python=${1:-python3}
here=$(cd "$(dirname "$0")" && pwd)
budget=5
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
workers=""

for trial in 1 2 3 4 5 6; do
    "$python" "$here/search.py" "$trial" &
    pid=$!
    for ((n = 0; n < budget * 4; n++)); do
        sleep 0.25
        kill -0 "$pid" 2>/dev/null || break
    done
    workers="$workers $(cat "/proc/$pid/task/$pid/children" 2>/dev/null)"
    if kill -9 "$pid" 2>/dev/null; then
        echo "trial $trial: over its time, killed"
    fi
    wait "$pid" 2>/dev/null
done

sleep 1
# The next user of the machine gets it clean.
for worker in $workers; do
    kill -9 "$worker" 2>/dev/null
done
exit 0
