#!/bin/bash
# Broker, publisher and a worker; ends with the worker
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
mkfifo port || exit 1
"$python" "$here/broker.py" port messages.log &
broker=$!
read -r number < port
"$python" "$here/publisher.py" "$number" &
publisher=$!
"$python" "$here/worker.py" "$number" 2
status=$?
kill -TERM "$publisher" "$broker"
wait "$publisher" "$broker"
echo "worker ended with $status"
exit "$status"
