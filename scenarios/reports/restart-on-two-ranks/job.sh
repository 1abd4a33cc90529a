#!/bin/bash
# The batch job that is queued again until the training is complete: the first time on one device, then on two
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
export OMP_NUM_THREADS=1
mkdir -p output/training_checkpoints || exit 1

launch() {
  local ranks=$1 pids=() failed=0
  for ((rank = 0; rank < ranks; rank++)); do
    RANK=$rank WORLD_SIZE=$ranks "$python" "$here/train.py" --output output --seconds 9 &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do
    wait "$pid" || failed=1
  done
  return $failed
}

echo "segment 1: one rank"
launch 1 || exit 1
echo "segment 2: two ranks"
launch 2 || { echo "training segment failed"; exit 1; }
