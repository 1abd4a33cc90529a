#!/bin/sh
# Predictions for the test questions
export OMP_NUM_THREADS=1
exec "$1" "$(dirname "$0")/run_inference.py" --num_workers 4 --batch_size 32
