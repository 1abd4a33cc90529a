#!/bin/bash
# A study on one machine: processes that optimize it side by side, and share a file of SQLite.
here=$(dirname "$0")
"${PYTHON:-python3}" "$here/optimize.py" trials.db create
pids=()
for number in 1 2; do
  "${PYTHON:-python3}" "$here/optimize.py" trials.db optimize $number &
  pids+=($!)
done
failed=0
for pid in "${pids[@]}"; do
  wait "$pid" || failed=1
done
exit $failed
