#!/bin/bash
# The pusher, and the devices that stream conversations to it
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
export OPENBLAS_NUM_THREADS=1
exec 3< <(exec "$python" "$here/pusher.py")
pusher=$!
read -r -u 3 port
"$python" "$here/devices.py" "$port"
status=$?
kill -TERM "$pusher"
wait "$pusher"
cat <&3
exit $status
