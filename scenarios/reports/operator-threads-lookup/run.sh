#!/bin/bash
# The service, and a client that presents a token with each request
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
mkfifo port || exit 1
"$python" "$here/service.py" --port-file port &
service=$!
"$python" "$here/client.py" --port-file port
status=$?
kill -TERM "$service"
wait "$service"
exit $status
