#!/bin/bash
# As the container's entry point: the server in the background, and the load test against it.
cd "$(dirname "$0")" || exit
python=${PYTHON:-python3}
socket=$(mktemp -u)
"$python" server.py "$socket" --workers 4 --preload &
server=$!
trap 'kill $server 2>/dev/null; rm -f "$socket"' EXIT
until [ -S "$socket" ]; do
    kill -0 $server 2>/dev/null || exit 1
    sleep 0.2
done
"$python" clients.py "$socket" --requests 4400
status=$?
kill $server 2>/dev/null
wait $server
exit $status
