#!/bin/bash
# The API server of a small cluster, and the controller of the search
python=$1
here=$(dirname "$0")
export OMP_NUM_THREADS=1
mkfifo endpoint
"$python" "$here/cluster.py" endpoint &
cluster=$!
read -r port < endpoint
"$python" "$here/controller.py" "$port"
status=$?
kill "$cluster" 2> /dev/null
wait "$cluster" 2> /dev/null
exit $status
