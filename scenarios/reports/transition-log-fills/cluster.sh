#!/bin/bash
# A scheduler and two workers on this machine
python=$1
cd "$(dirname "$0")" || exit 1
export OMP_NUM_THREADS=1
work=$(mktemp -d) || exit 1
"$python" scheduler.py --scheduler-file "$work/scheduler.json" --seconds 30 &
scheduler=$!
"$python" worker.py "$work/scheduler.json" &
first=$!
"$python" worker.py "$work/scheduler.json" &
wait $first $!
wait $scheduler
status=$?
rm -rf "$work"
exit $status
