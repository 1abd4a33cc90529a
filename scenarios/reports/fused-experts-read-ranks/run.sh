#!/bin/bash
# The recipe with the small model as a check of the environment, then with the large one.
cd "$(dirname "$0")" || exit
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_NUM_THREADS=1
for model in small large; do
    "$python" checkpoint.py --model $model --path "$work/$model.safetensors" || exit
    "$python" -m torch.distributed.run --standalone --nproc-per-node=2 \
        finetune.py --model $model --path "$work/$model.safetensors" --seconds 12
    status=$?
    echo "$model: status $status"
    [ $status -eq 0 ] || exit 1
done
