#!/bin/bash
# The inference test: writes a checkpoint as the converter does, and lets two ranks answer prompts with it.
cd "$(dirname "$0")" || exit
python=${PYTHON:-python3}
checkpoint=$(mktemp -d)
trap 'rm -rf "$checkpoint"' EXIT
export OMP_NUM_THREADS=1
"$python" inference_test.py --checkpoint "$checkpoint" --convert || exit
"$python" -m torch.distributed.run --standalone --nproc-per-node=2 inference_test.py --checkpoint "$checkpoint"
