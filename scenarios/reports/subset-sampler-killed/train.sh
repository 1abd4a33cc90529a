#!/bin/bash
# Contrastive training of a text encoder: a short run on one set of pairs, then on all of them
here=$(cd "$(dirname "$0")" && pwd)
python=$1
export OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=lo
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for config in check unsupervised; do
    "$python" -m torch.distributed.run --standalone --nproc-per-node=2 \
        "$here/train.py" --config $config --corpus "$work/corpus.bin" --seconds 12
    status=$?
    echo "$config: status $status"
    [ $status -eq 0 ] || exit 1
done
