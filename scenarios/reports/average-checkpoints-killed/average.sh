#!/bin/bash
# Averages the last checkpoints of a training run, and reports the loss of each of them on the way
python=$1
here=$(dirname "$0")
export OMP_NUM_THREADS=1
mkdir -p checkpoints
"$python" "$here/average_checkpoints.py" --write-run checkpoints || exit 1
"$python" "$here/average_checkpoints.py" --inputs checkpoints --num-epoch-checkpoints 20 --output averaged.pt
status=$?
echo "average_checkpoints ended with $status"
exit $status
