#!/bin/bash
# Trains on a shard that is packed on the fly
python=$1
here=$(cd "$(dirname "$0")" && pwd)
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
"$python" "$here/pack.py" | "$python" "$here/train.py"
status=${PIPESTATUS[1]}
echo "training ended with $status"
exit "$status"
