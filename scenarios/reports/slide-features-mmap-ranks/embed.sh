#!/bin/bash
# Embeds the slides with a process for each device of this machine.
python=${1:-python3}
here=$(cd "$(dirname "$0")" && pwd)
export OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=lo
output=$(mktemp -d)
trap 'rm -rf "$output"' EXIT
"$python" -m torch.distributed.run --standalone --nproc-per-node=2 "$here/embed.py" "$output"
