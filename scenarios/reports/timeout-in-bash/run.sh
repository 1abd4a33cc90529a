#!/bin/bash
# As a cluster's batch script has it: a time limit around the training, its output through tee.
set -o pipefail
here=$(dirname "$0")
export OMP_NUM_THREADS=1
timeout 120 "${PYTHON:-python3}" "$here/train.py" 2>&1 | tee /dev/null
