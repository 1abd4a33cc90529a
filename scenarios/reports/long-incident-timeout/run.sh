#!/bin/bash
# The server with its default timeout, and one run of the client
python=$1
cd "$(dirname "$0")" || exit 1
export OMP_NUM_THREADS=1
work=$(mktemp -d) || exit 1
"$python" server.py --port-file "$work/port" --timeout 9 &
server=$!
"$python" client.py --port-file "$work/port"
status=$?
kill -TERM "$server"
wait "$server"
rm -rf "$work"
exit $status
