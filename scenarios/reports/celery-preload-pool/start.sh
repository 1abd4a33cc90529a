#!/bin/bash
# A broker, and one worker that takes its messages
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
exec 3< <(exec "$python" "$here/broker.py")
broker=$!
read -r -u 3 port
"$python" "$here/worker.py" "$port"
status=$?
wait "$broker"
exit $status
