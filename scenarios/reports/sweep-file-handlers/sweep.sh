#!/bin/bash
# A grid search by one agent
python=$1
cd "$(dirname "$0")" || exit 1
export OMP_NUM_THREADS=1
work=$(mktemp -d) || exit 1
"$python" agent.py --work "$work"
status=$?
rm -rf "$work"
echo "agent ended with $status"
exit $status
