#!/bin/bash
# The server with its Python backend, and a client that sends the images of a test set
python=$1
here=$(dirname "$0")
export OMP_NUM_THREADS=1
exec 3< <("$python" "$here/server.py"; echo "server ended with $?")
read -r port <&3
echo "server listens on $port"
"$python" "$here/client.py" --port "$port"
status=$?
cat <&3
exit $status
