#!/bin/bash
# First the examples of the corpus, then the training on them. Temporary files go where they are fast.
python=${1:-python3}
here=$(cd "$(dirname "$0")" && pwd)
data=$(mktemp -d)
trap 'rm -rf "$data" /dev/shm/epoch-*-"$$"' EXIT
export OMP_NUM_THREADS=1
"$python" "$here/pregenerate.py" "$data" || exit
"$python" "$here/pretrain.py" "$data" "/dev/shm" "$$"
exit $?
