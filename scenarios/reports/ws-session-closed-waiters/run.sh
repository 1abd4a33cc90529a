#!/bin/bash
# The sensor's server, and the client that scores what it sends
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
export OMP_NUM_THREADS=1
mkfifo port || exit 1
"$python" "$here/server.py" --port-file port &
server=$!
"$python" "$here/client.py" --port-file port
status=$?
kill -TERM "$server" 2>/dev/null
wait "$server"
exit $status
