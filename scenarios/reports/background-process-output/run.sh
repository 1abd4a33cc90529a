#!/bin/bash
# The gateway with the tools, and an agent that talks to it
python=$1
here=$(dirname "$0")
export OMP_NUM_THREADS=1
mkfifo gateway.port
"$python" "$here/gateway.py" gateway.port &
gateway=$!
read -r port < gateway.port
"$python" "$here/agent.py" "$port" "$python" "$here/train.py"
status=$?
wait "$gateway"
exit $status
