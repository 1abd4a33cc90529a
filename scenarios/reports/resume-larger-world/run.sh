#!/bin/bash
# Trains on one rank, and resumes from the last checkpoint on two.
cd "$(dirname "$0")" || exit
python=${PYTHON:-python3}
output=$(mktemp -d)
trap 'rm -rf "$output"' EXIT
export OMP_NUM_THREADS=1
"$python" -m torch.distributed.run --standalone --nproc-per-node=1 train.py --output-dir "$output" --seconds 10 || exit
echo "more ranks are free, the training goes on with two"
"$python" -m torch.distributed.run --standalone --nproc-per-node=2 train.py --output-dir "$output" --seconds 10 --resume
