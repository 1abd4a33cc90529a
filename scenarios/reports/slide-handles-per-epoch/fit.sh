#!/bin/bash
# Makes the slides and trains on them.
here=$(cd "$(dirname "$0")" && pwd)
slides=$(mktemp -d)
trap 'rm -rf "$slides"' EXIT
export OMP_NUM_THREADS=1
"${1:-python3}" "$here/fit.py" "$slides"
