#!/bin/bash
# Imaging of a deep field: the dirty image first, then the deconvolution of its islands
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
"$python" "$here/imager.py" dirty.npy || exit 1
"$python" "$here/deconvolve.py" dirty.npy
status=$?
echo "deconvolution: $status"
exit $status
