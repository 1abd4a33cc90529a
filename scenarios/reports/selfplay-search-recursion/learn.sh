#!/bin/bash
# Plays games against itself until the search is good
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
export OMP_NUM_THREADS=1
exec "$python" "$here/main.py"
