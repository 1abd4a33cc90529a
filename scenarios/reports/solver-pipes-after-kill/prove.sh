#!/bin/bash
# Proves the tests of a contract with two solver threads
python=$1
here=$(cd "$(dirname "$0")" && pwd)
export HALMOS_SOLVER="$python -I -S $here/solver.py"
"$python" "$here/prove.py" --solver-timeout-assertion 300 --solver-threads 2
status=$?
echo "prove ended with $status"
exit $status
