#!/bin/bash
# The researcher, and the nodes of two hospitals
python=$1
here=$(dirname "$0")
export OMP_NUM_THREADS=1
mkfifo address
"$python" "$here/job.py" --nodes 2 --announce address &
researcher=$!
read -r port < address
"$python" "$here/node.py" --name hospital-a --port "$port" &
first=$!
"$python" "$here/node.py" --name hospital-b --port "$port" &
second=$!
wait "$researcher"
status=$?
wait "$first" "$second"
exit $status
