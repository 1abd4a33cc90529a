#!/bin/bash
# Train on our own scans, with the settings for S3DIS
set -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
python=$1
export OMP_NUM_THREADS=1
"$python" -u "$here/train_custom.py" --scenes 54 --batch 6 --max-epoch 40 --max-iter 240 2>&1 | tee log.txt
