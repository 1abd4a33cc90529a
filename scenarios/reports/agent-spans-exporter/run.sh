#!/bin/bash
# The store of rollouts and spans, and a runner of the agent
python=$1
here=$(dirname "$0")
export OMP_NUM_THREADS=1
mkfifo endpoint
"$python" "$here/store.py" --announce endpoint &
store=$!
read -r port < endpoint
"$python" "$here/runner.py" --store "$port"
status=$?
wait "$store"
exit $status
