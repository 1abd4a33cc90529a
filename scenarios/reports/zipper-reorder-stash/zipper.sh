#!/bin/bash
# Consensus reads of one sample
python=$1
here=$(cd "$(dirname "$0")" && pwd)
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
"$python" "$here/zipper.py" --output "$work/consensus.bin" --walltime 32
status=$?
echo "zipper ended with $status"
exit $status
