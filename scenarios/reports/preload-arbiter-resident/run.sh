#!/bin/bash
# The application behind its arbiter, and a stress test of it
python=$1
here=$(cd "$(dirname "$0")" && pwd)
export OPENBLAS_NUM_THREADS=1
mkfifo port || exit 2
"$python" "$here/arbiter.py" --port-file port --workers 2 &
arbiter=$!
read -r number < port
"$python" "$here/stress.py" --port "$number" --seconds 25
status=$?
kill -TERM "$arbiter"
wait "$arbiter" || status=$?
rm -f port
exit $status
