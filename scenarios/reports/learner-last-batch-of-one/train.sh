#!/bin/bash
# One cycle on the images of the first round
python=$1
cd "$(dirname "$0")" || exit 1
export OMP_NUM_THREADS=1
if ! "$python" train.py --epochs 5 --batch-size 32; then
    echo "training failed" >&2
    exit 1
fi
