#!/bin/bash
# Takes the pictures apart, then starts a rank for each device of this node.
set -e
python=${1:-python3}
here=$(cd "$(dirname "$0")" && pwd)
export OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=lo
scene=$(mktemp -d)
trap 'rm -rf "$scene"' EXIT
"$python" "$here/frames.py" "$scene"
"$python" -m torch.distributed.run --standalone --nproc-per-node=2 "$here/train.py" "$scene"
