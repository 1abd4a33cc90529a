#!/bin/bash
# The broker and a worker
python=$1
here=$(dirname "$0")
export OMP_NUM_THREADS=1
mkfifo broker.port
"$python" "$here/broker.py" broker.port &
broker=$!
read -r port < broker.port
"$python" "$here/worker.py" "$port"
status=$?
wait "$broker"
exit $status
