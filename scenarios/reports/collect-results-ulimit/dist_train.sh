#!/bin/bash
# Training on one node. The queue grants each process what torch maps at its start, and 1100 MiB of address space.
python=$1
here=$(cd "$(dirname "$0")" && pwd)
export OMP_NUM_THREADS=1 MALLOC_ARENA_MAX=2
start=$("$python" "$here/train.py" --print-address-space) || exit 3
ulimit -v $((start + 1100 * 1024))
exec "$python" -m torch.distributed.run --standalone --nnodes=1 --nproc_per_node=2 "$here/train.py"
