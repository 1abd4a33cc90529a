#!/bin/bash
# The retrieval API over an index in a folder, and an application that queries and updates it
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
export OPENBLAS_NUM_THREADS=1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
exec 3< <(exec "$python" "$here/api.py" "$folder")
api=$!
read -r -u 3 port
"$python" "$here/application.py" "$port"
status=$?
kill -TERM "$api" 2> /dev/null
wait "$api"
echo "the API ended with $?, the application with $status"
cat <&3
exit $status
