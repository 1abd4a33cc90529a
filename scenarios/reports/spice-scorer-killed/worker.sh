#!/bin/bash
# The worker of one challenge: takes what is in its queue, then ends
python=$1
here=$(cd "$(dirname "$0")" && pwd)
export OMP_NUM_THREADS=1
mkdir -p compute/results
"$python" -u "$here/submission_worker.py" --folder compute \
    --submission nocaps-val-a:24 --submission nocaps-val-b:40 --submission nocaps-test:3000
status=$?
for result in compute/results/*.json; do
    echo "$(basename "$result"): $(cat "$result")"
done
exit $status
