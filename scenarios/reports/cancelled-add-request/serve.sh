#!/bin/bash
# Serves the model, and runs the load of an impatient gateway against it
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
export OMP_NUM_THREADS=1
mkfifo port || exit 1
"$python" "$here/api_server.py" --port-file port &
server=$!
"$python" "$here/load.py" --port-file port
status=$?
kill -TERM "$server"
wait "$server"
exit $status
