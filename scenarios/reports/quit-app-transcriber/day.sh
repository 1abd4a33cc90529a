#!/bin/bash
# A day with the app: it is opened for each meeting, and quit afterwards
python=$1
here=$(dirname "$0")
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
pids=$(mktemp)
for session in 1 2 3 4; do
    "$python" "$here/app.py" "$session" "$pids"
done
# The next user of the machine gets it clean.
while read -r pid; do
    kill -9 "$pid" 2>/dev/null
done <"$pids"
rm -f "$pids"
exit 0
