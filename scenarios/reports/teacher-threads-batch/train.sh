#!/bin/bash
# One thread of mathematics per process: the processes learn side by side.
here=$(cd "$(dirname "$0")" && pwd)
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
"${1:-python3}" "$here/train_model.py"
