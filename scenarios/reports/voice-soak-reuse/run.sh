#!/bin/bash
# The daemon, and the load for it
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
export OMP_NUM_THREADS=1
exec 3< <(exec "$python" "$here/daemon.py")
daemon=$!
read -r -u 3 port
"$python" "$here/calls.py" "$port"
status=$?
kill -TERM "$daemon"
wait "$daemon" || status=1
cat <&3
exit $status
