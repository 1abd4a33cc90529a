#!/bin/bash
# The tool server, and agents that connect to it
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
export OMP_NUM_THREADS=1
exec 3< <(exec "$python" "$here/server.py")
server=$!
read -r -u 3 port
"$python" "$here/agents.py" "$port"
kill -TERM "$server"
wait "$server"
status=$?
cat <&3
exit $status
