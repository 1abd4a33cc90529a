#!/usr/bin/env bash
# Write the dataset file, and train on it with two ranks.
set -u
python=${1:-python}
cd "$(dirname "$0")" || exit 2
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT
export OMP_NUM_THREADS=1
"$python" write_dataset.py "$data/train.beton" || exit 2
"$python" -m torch.distributed.run --standalone --nproc-per-node=2 train.py --data "$data/train.beton"
