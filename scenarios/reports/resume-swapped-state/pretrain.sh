#!/bin/bash
# Pretrains for some epochs, and then for some more from the checkpoint
set -eu
export OMP_NUM_THREADS=1
here=$(dirname "$0")
output=$(mktemp -d)
trap 'rm -rf "$output"' EXIT
"$1" "$here/train.py" --output-dir "$output" --epochs 4
"$1" "$here/train.py" --output-dir "$output" --epochs 8 --resume "$output/current.pth"
echo "pretrained"
