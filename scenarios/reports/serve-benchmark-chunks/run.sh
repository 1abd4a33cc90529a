#!/bin/bash
# The model server, and the benchmark against it
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
exec 3< <(exec "$python" "$here/server.py")
server=$!
read -r -u 3 port
"$python" "$here/bench_serve.py" "$port"
status=$?
kill -TERM "$server"
wait "$server"
cat <&3
exit $status
