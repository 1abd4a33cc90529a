#!/bin/sh
# One run of the detector; the loader passes its batches through shared memory
python=$1
here=$(dirname "$0")
OMP_NUM_THREADS=1 FLAGS_use_shared_memory=1 exec "$python" "$here/train_detector.py" --min-boxes 3
