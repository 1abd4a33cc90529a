#!/bin/bash
# The server, and the load of five sessions
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
export OMP_NUM_THREADS=1
mkfifo port || exit 1
"$python" "$here/server.py" --port-file port &
server=$!
"$python" "$here/load.py" --port-file port
status=$?
kill -TERM "$server" 2>/dev/null
wait "$server" 2>/dev/null
exit $status
