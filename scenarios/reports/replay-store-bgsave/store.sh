#!/bin/bash
# A store of rollouts and an actor on this machine
python=$1
cd "$(dirname "$0")" || exit 1
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
work=$(mktemp -d) || exit 1
"$python" store.py "$work/store.sock" "$work/dump.rpl" &
store=$!
"$python" actor.py "$work/store.sock"
status=$?
wait $store || status=$?
rm -rf "$work"
exit $status
