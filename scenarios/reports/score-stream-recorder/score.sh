#!/bin/bash
# Evaluates a task, and scores its log with another grader
python=$1
here=$(dirname "$0")
export OMP_NUM_THREADS=1
folder=$(mktemp -d)
"$python" "$here/evaluate.py" "$folder/task.eval" &&
    "$python" "$here/job.py" "$folder/task.eval" --output "$folder/scored.eval" --stream 6
status=$?
rm -rf "$folder"
exit $status
