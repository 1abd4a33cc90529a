#!/bin/bash
# Entry point of the image: the search over the grid, with two jobs
python=$1
here=$(dirname "$0")
export OMP_NUM_THREADS=1
"$python" "$here/search.py" --n-jobs 2 --cv 5
status=$?
echo "search ended with $status"
exit $status
