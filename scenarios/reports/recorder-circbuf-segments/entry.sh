#!/bin/sh
# Entry point of the container
python=$1
cd "$(dirname "$0")" || exit 1
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
"$python" recorder.py
status=$?
echo "recorder ended with $status"
exit $status
