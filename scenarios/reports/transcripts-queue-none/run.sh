#!/bin/bash
# The feed, and the program that transcribes it
python=$1
here=$(dirname "$0")
export OMP_NUM_THREADS=1
mkfifo port
"$python" "$here/feed.py" port &
feed=$!
read -r number < port
"$python" "$here/transcribe.py" "$number"
status=$?
kill "$feed"
wait "$feed" 2>/dev/null
exit $status
