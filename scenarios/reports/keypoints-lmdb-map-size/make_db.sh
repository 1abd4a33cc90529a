#!/bin/bash
# Job script: -l h_vmem=16G
python=$1
ulimit -v 16000000
cd "$(dirname "$0")" || exit 1
export OMP_NUM_THREADS=1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
"$python" make_db.py --work "$work" --seconds 20
status=$?
echo "make_db ended with $status"
exit $status
