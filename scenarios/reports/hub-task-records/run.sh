#!/bin/bash
# A cluster on one machine: the controller with its hub, two engines, and a client
python=$1
here=$(dirname "$0")
export OMP_NUM_THREADS=1
mkfifo connection
"$python" "$here/controller.py" --connection-file connection &
read -r port < connection
"$python" "$here/engine.py" "$port" &
"$python" "$here/engine.py" "$port" &
"$python" "$here/client.py" "$port"
status=$?
wait
exit $status
