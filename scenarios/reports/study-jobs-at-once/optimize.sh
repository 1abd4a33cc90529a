#!/bin/sh
# Runs the study with the threads of the trials as the only ones
here=$(cd "$(dirname "$0")" && pwd) || exit 1
OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 "$1" "$here/optimize.py" 4 || exit 1
echo "the study is over"
