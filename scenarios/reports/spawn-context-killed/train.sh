#!/bin/bash
# Selects and calibrates the models of an ensemble. One job after the other, as in the package's own script.
set -e
python=$1
here=$(cd "$(dirname "$0")" && pwd)
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
"$python" "$here/calibrate.py" --num-jobs 0 --models 14
"$python" "$here/calibrate.py" --num-jobs 4 --models 40
