#!/bin/bash
# Pretrains, and removes the exports afterwards: only their form matters here.
here=$(cd "$(dirname "$0")" && pwd)
exports=$(mktemp -d)
trap 'rm -rf "$exports"' EXIT
export OMP_NUM_THREADS=1
"${1:-python3}" "$here/pretrain.py" "$exports"
exit $?
