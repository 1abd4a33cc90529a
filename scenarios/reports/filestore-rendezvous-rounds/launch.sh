#!/bin/bash
# Elastic training of two node groups on one machine, rendezvous over a file
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
mkdir -p run/tmp || exit 1
export TMPDIR=$PWD/run/tmp OMP_NUM_THREADS=1
"$python" "$here/agent.py" --groups 2 --minutes 1.0
status=$?
echo "agent ended with status $status"
exit $status
