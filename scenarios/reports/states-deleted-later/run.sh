#!/bin/bash
# The demo, and its users
python=$1
here=$(dirname "$0")
export OMP_NUM_THREADS=1
mkfifo demo.port
"$python" "$here/app.py" demo.port &
app=$!
read -r port < demo.port
"$python" "$here/users.py" "$port"
status=$?
wait "$app"
exit $status
