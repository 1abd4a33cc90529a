#!/bin/bash
# What every rank needs in its environment, then the trainer.
here=$(cd "$(dirname "$0")" && pwd) || exit 1
export OMP_NUM_THREADS=1
export PYTHONUNBUFFERED=1
echo "rank $RANK, start $TORCHELASTIC_RESTART_COUNT"
"$1" "$here/train.py" --width 768 --steps 70
status=$?
echo "rank $RANK left with $status"
exit $status
