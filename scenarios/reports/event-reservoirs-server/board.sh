#!/bin/bash
# A board over the folder of the runs, for as long as the training takes
python=$1
here=$(cd "$(dirname "$0")" && pwd)
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
mkdir -p runs/train runs/eval
"$python" "$here/board.py" --logdir runs &
board=$!
"$python" "$here/train.py" --logdir runs
status=$?
kill -TERM "$board"
wait "$board"
exit "$status"
