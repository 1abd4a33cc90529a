#!/bin/bash
# Train at a low resolution first, then at the one of the cameras
here=$(cd "$(dirname "$0")" && pwd)
python=$1
export OMP_NUM_THREADS=1
for imgsz in 320 640; do
    "$python" "$here/train.py" --imgsz $imgsz --batch 16 --workers 2 --epochs 2
    status=$?
    echo "imgsz $imgsz: status $status"
    [ $status -eq 0 ] || exit 1
done
