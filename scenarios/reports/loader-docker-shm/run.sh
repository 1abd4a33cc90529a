#!/bin/bash
# The command of the container
python=$1
cd "$(dirname "$0")" || exit 1
export OMP_NUM_THREADS=1
"$python" train.py --epochs 16 --resize-until 13
status=$?
echo "training ended with $status"
exit $status
