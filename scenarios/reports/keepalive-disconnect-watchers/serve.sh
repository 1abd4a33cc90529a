#!/bin/sh
# The server, and a gateway with its kept-alive connections in front of it
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
"$python" "$here/openai_server.py" port.txt 24 &
server=$!
"$python" "$here/gateway.py" port.txt 60
wait $server
status=$?
echo "server ended with $status"
exit $status
