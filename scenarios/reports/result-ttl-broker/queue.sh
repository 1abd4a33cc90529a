#!/bin/bash
# A broker, two workers, and the site that enqueues its jobs
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
mkfifo port || exit 1
"$python" "$here/broker.py" --port-file port --clients 3 &
broker=$!
read -r number < port
workers=()
for name in 1 2; do
    "$python" "$here/worker.py" --port "$number" --name "$name" &
    workers+=($!)
done
"$python" "$here/producer.py" --port "$number" --workers 2 --seconds 31
status=$?
wait "${workers[@]}"
wait "$broker"
exit $status
