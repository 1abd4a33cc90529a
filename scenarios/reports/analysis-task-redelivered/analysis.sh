#!/bin/bash
# Broker, worker and the client that runs an analysis
python=$1
here=$(dirname "$0")
export OPENBLAS_NUM_THREADS=1
mkfifo announced
"$python" "$here/broker.py" announced &
broker=$!
read -r port < announced
"$python" "$here/worker.py" "$port" 2 &
worker=$!
"$python" "$here/client.py" "$port"
status=$?
kill -TERM "$worker"
wait "$worker"
kill -TERM "$broker"
wait "$broker"
echo "analysis ended with $status"
exit $status
