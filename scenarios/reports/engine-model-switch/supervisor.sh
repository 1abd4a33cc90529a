#!/bin/bash
# Keeps the agent running: status 3 says that it is to be started with the next model
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
COCORE_HOME=$(mktemp -d)
export COCORE_HOME
COCORE_UNTIL=$(( $(date +%s) + 40 ))
export COCORE_UNTIL
status=3
turn=0
while [ $status -eq 3 ]; do
    "$python" "$here/agent.py" "$turn"
    status=$?
    echo "agent $turn left with $status"
    turn=$(( turn + 1 ))
done
exit $status
