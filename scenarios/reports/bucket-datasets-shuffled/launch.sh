#!/bin/sh
# One task of the training, as the batch system starts it on each node
export RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 OMP_NUM_THREADS=1
"$1" "$(dirname "$0")/train.py" --buckets 256x192 192x256 224x224
status=$?
echo "task $RANK ended with $status"
exit $status
