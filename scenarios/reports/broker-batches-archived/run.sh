#!/bin/bash
# Records of downloads, through the pipeline
set -o pipefail
python=$1
here=$(dirname "$0")
export OMP_NUM_THREADS=1
"$python" "$here/downloads.py" 34 | "$python" "$here/pipeline.py" archive
