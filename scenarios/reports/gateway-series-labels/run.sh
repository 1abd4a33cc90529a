#!/bin/bash
# The gateway, and a client that sends the requests of many end users
python=$1
here=$(dirname "$0")
export OMP_NUM_THREADS=1
exec 3< <("$python" "$here/gateway.py"; echo "gateway ended with $?")
read -r port <&3
echo "gateway listens on $port"
"$python" "$here/client.py" "$port"
status=$?
cat <&3
exit $status
