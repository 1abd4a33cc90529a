#!/bin/bash
# Three ranks of the simulation; it fails when one of them does
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
export OMP_NUM_THREADS=1 WORLD_SIZE=3 RENDEZVOUS="$PWD/rendezvous.$$"
ranks=()
for ((rank = 0; rank < WORLD_SIZE; rank++)); do
    RANK=$rank "$python" "$here/simulate.py" &
    ranks+=("$!")
done
status=0
for pid in "${ranks[@]}"; do
    wait "$pid" || status=1
done
rm -f "$RENDEZVOUS"
exit "$status"
