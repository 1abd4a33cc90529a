#!/bin/bash
# The orchestrator of a reinforcement learning run, and the trainer that takes its batches
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
export OMP_NUM_THREADS=1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
set -o pipefail
"$python" "$here/orchestrator.py" "$folder" | "$python" "$here/trainer.py"
