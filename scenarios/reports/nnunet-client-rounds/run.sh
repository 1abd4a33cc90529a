#!/bin/bash
# The server of the federation and the client of one hospital
python=$1
here=$(dirname "$0")
export OMP_NUM_THREADS=1
mkfifo address
"$python" "$here/server.py" --announce address &
server=$!
read -r port < address
"$python" "$here/nnunet_client.py" --port "$port"
status=$?
wait "$server"
exit $status
