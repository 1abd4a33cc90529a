#!/bin/bash
# The server of images and a client beside it, as the container's entry point starts them.
here=$(dirname "$0")
"${PYTHON:-python3}" "$here/server.py" server.sock &
server=$!
while kill -0 $server 2>/dev/null && [ ! -S server.sock ]; do sleep 0.2; done
"${PYTHON:-python3}" "$here/client.py" server.sock
status=$?
kill $server 2>/dev/null
wait $server 2>/dev/null
exit $status
