#!/bin/bash
# Evaluate the detector on the validation images, with all devices of this node
here=$(cd "$(dirname "$0")" && pwd)
python=$1
export OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=lo
"$python" -m torch.distributed.run --standalone --nproc-per-node=2 "$here/eval_lvis.py" --images 3000 || exit 1
