#!/bin/bash
# The scheduler, and a client that keeps it busy
python=$1
here=$(dirname "$0")
export OMP_NUM_THREADS=1
mkfifo port
"$python" "$here/scheduler.py" port &
scheduler=$!
read -r number < port
"$python" "$here/client.py" "$number"
wait "$scheduler"
