#!/bin/bash
# Encodes the scanned documents for the layout model
set -eu
export OMP_NUM_THREADS=1
output=$(mktemp -d)
trap 'rm -rf "$output"' EXIT
"$1" "$(dirname "$0")/encode.py" --output "$output" --writer-batch-size 240
echo "encoded"
