#!/bin/bash
# The batch script of the job: writes the dataset once, and trains on it
python=$1
here=$(dirname "$0")
export OMP_NUM_THREADS=1
folder=$(mktemp -d)
"$python" "$here/train.py" "$folder"
status=$?
rm -rf "$folder"
echo "job ended with $status"
exit $status
