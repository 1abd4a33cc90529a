#!/bin/bash
# A pod: an application with its volume, the log store beside it, and somebody who asks for logs
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
mkdir -p volumes/empty-dir || exit 1
mkfifo port || exit 1
"$python" "$here/app.py" volumes/empty-dir --seconds 31 &
app=$!
"$python" "$here/store.py" volumes --port-file port &
store=$!
read -r number < port
"$python" "$here/queries.py" --port "$number" --seconds 31
status=$?
wait "$app" || status=$?
wait "$store" || status=$?
exit $status
