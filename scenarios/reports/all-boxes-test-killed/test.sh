#!/bin/bash
# Test the last model of the run on the validation images
set -o pipefail
python=$1
here=$(cd "$(dirname "$0")" && pwd)
export OMP_NUM_THREADS=1
"$python" -u "$here/test_net.py" --dataset coco2014val --images 2400 2>&1 | tee test.log
status=$?
ls -l detections.pkl 2>/dev/null || echo "no detections.pkl"
exit $status
