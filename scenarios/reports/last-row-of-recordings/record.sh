#!/bin/bash
# Records for half a minute, and fits a baseline to the last row of each block
set -o pipefail
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
"$python" "$here/recorder.py" --channels 40 --rows 2400 --seconds 26 | "$python" "$here/baseline.py" --channels 40
status=$?
echo "pipeline ended with $status"
exit $status
