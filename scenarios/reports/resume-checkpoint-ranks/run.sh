#!/bin/bash
# As a requeued batch script: the first part of the schedule with one rank, the rest with all, from its checkpoint.
here=$(dirname "$0")
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_NUM_THREADS=1

RANK=0 WORLD_SIZE=1 "$python" "$here/train.py" --folder "$work" --steps 50 || exit

for rank in 0 1; do
    RANK=$rank WORLD_SIZE=2 "$python" "$here/train.py" --folder "$work" --steps 110 --resume &
    ranks+=($!)
done
status=0
for _ in "${ranks[@]}"; do
    wait -n || { echo "a rank ended with $?"; status=1; kill "${ranks[@]}" 2>/dev/null; }
done
exit $status
