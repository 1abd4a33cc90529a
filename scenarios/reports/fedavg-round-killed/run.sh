#!/bin/bash
# The server of the federation, and the simulator of its sites
python=$1
here=$(dirname "$0")
export OMP_NUM_THREADS=1
mkfifo announced
"$python" "$here/server.py" --announce announced &
server=$!
read -r port < announced
"$python" "$here/simulator.py" --port "$port" &
simulator=$!
wait "$server"
status=$?
echo "server ended with $status"
wait "$simulator"
exit $status
