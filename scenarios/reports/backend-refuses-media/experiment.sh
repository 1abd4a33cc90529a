#!/bin/bash
# The tracker's backend and one experiment
python=$1
cd "$(dirname "$0")" || exit 1
export OMP_NUM_THREADS=1
work=$(mktemp -d) || exit 1
mkfifo "$work/port"
"$python" backend.py >"$work/port" &
backend=$!
read -r port <"$work/port"
API_HOST="127.0.0.1:$port" "$python" train.py
status=$?
kill -TERM "$backend"
wait "$backend" 2>/dev/null
rm -rf "$work"
exit $status
