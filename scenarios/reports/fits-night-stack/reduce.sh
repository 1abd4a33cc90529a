#!/bin/bash
# The frames of one night, registered and stacked
python=$1
cd "$(dirname "$0")" || exit 1
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
night=$(mktemp -d) || exit 1
"$python" observe.py "$night" 300 && "$python" stack.py "$night"
status=$?
rm -rf "$night"
echo "reduction ended with $status"
exit $status
