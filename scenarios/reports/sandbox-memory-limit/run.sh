#!/bin/bash
# The sandbox service, and the check of the reference answers against it
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
exec 3< <(exec "$python" "$here/sandbox.py")
sandbox=$!
read -r -u 3 port
"$python" "$here/evaluate.py" "$port"
status=$?
kill -TERM "$sandbox"
wait "$sandbox"
exit $status
