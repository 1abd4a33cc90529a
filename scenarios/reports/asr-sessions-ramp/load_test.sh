#!/bin/bash
# A recognition server, and a client that raises the number of concurrent sessions
python=$1
here=$(dirname "$0")
export OMP_NUM_THREADS=1
exec 3< <("$python" "$here/server.py")
read -r port <&3
"$python" "$here/client.py" --port "$port"
status=$?
cat <&3
exit $status
