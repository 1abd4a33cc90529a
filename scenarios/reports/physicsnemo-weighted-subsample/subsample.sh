#!/bin/bash
# Weighted subsets of surface meshes, from the coarse to the fine ones
set -o pipefail
python=$1
here=$(dirname "$0")
export OMP_NUM_THREADS=1
"$python" "$here/subsample.py" --points 20000 --seconds 18 2>&1 | while read -r line; do
    echo "[datapipe] $line"
done
exit "${PIPESTATUS[0]}"
