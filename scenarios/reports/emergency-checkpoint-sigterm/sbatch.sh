#!/bin/bash
# A batch system with one job: the job's processes form a group, and when its time is over, all of them get SIGTERM.
python=${1:-python3}
here=$(cd "$(dirname "$0")" && pwd)
export OMP_NUM_THREADS=1
run=$(mktemp -d)
trap 'rm -rf "$run"' EXIT
set -m
"$python" "$here/train.py" "$run" &
step=$!
# The time of the job begins when it trains.
for ((n = 0; n < 240; n++)); do
    [ -e "$run/started" ] && break
    sleep 0.25
done
sleep 16
echo "slurmstepd: job preempted, SIGTERM to all processes of the step"
kill -TERM -- "-$step"
wait "$step"
status=$?
ls "$run"/step_* >/dev/null 2>&1 || echo "no checkpoint to resume from"
exit $status
