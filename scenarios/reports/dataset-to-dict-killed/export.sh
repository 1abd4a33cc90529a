#!/bin/bash
# Exports a data set for the portal, points first
python=$1
cd "$(dirname "$0")" || exit 1
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
out=$(mktemp -d) || exit 1
"$python" export.py "$out"
status=$?
rm -rf "$out"
echo "export ended with $status"
exit $status
