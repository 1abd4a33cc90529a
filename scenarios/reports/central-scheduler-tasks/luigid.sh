#!/bin/bash
# The central scheduler, and two workers with the tasks of the nightly pipelines
python=$1
here=$(cd "$(dirname "$0")" && pwd)
mkfifo port || exit 2
"$python" "$here/scheduler.py" --port-file port --workers 2 &
scheduler=$!
read -r number < port
"$python" "$here/worker.py" --port "$number" --name billing --seconds 26 &
billing=$!
"$python" "$here/worker.py" --port "$number" --name events --seconds 26
wait "$billing"
wait "$scheduler"
status=$?
rm -f port
exit $status
