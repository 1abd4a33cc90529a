#!/bin/bash
# The pretrained model, and the training that goes on from it
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
export OMP_NUM_THREADS=1
"$python" "$here/main.py" --norms optimized --epochs 2 --checkpoint pretrained.pth.tar || exit 2
"$python" "$here/main.py" --resume pretrained.pth.tar --epochs 4 --checkpoint model.pth.tar
status=$?
rm -f pretrained.pth.tar model.pth.tar
exit $status
