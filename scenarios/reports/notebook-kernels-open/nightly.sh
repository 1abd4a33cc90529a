#!/bin/sh
# The notebooks of all regions
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
"$1" "$(dirname "$0")/pipeline.py"
status=$?
echo "notebooks ended with $status"
exit $status
