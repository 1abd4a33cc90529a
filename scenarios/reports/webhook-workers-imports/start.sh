#!/bin/bash
# The container's server, and the cluster that asks whether it has started
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
exec 3< <(exec "$python" "$here/arbiter.py")
arbiter=$!
read -r -u 3 port
"$python" "$here/probe.py" "$port"
status=$?
kill -TERM "$arbiter"
wait "$arbiter"
exit $status
