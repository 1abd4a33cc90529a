#!/bin/bash
# The camera's frames with their detections, and the tracker behind them
python=$1
cd "$(dirname "$0")" || exit 1
export OMP_NUM_THREADS=1
set -o pipefail
"$python" detections.py --seconds 27 | "$python" tracker.py
