#!/bin/bash
# SBATCH --partition=small --mem=640M --cpus-per-task=2
python=$1
here=$(cd "$(dirname "$0")" && pwd)
export OMP_NUM_THREADS=1 TMPDIR=/dev/shm/basecall-$$
mkdir -p "$TMPDIR" || exit 1
trap 'rm -rf "$TMPDIR"' EXIT
"$python" "$here/basecall.py" --output calls.fa
status=$?
echo "basecalling ended with $status"
exit $status
