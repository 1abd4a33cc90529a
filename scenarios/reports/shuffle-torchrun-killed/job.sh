#!/bin/bash
# The script that the cluster starts: one node, two processes.
set -e
python=${1:-python3}
here=$(cd "$(dirname "$0")" && pwd)
export OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=lo
"$python" -m torch.distributed.run --nnodes=1 --nproc_per_node=2 --rdzv_backend=c10d --rdzv_endpoint=localhost:0 \
    "$here/train.py"
echo "trained"
