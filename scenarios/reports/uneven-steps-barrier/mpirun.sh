#!/bin/bash
# mpirun -n 2: ends the other rank when one fails
python=$1
here=$(cd "$(dirname "$0")" && pwd)
export OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=lo WORLD_SIZE=2
"$python" "$here/generate.py" data 95 || exit 2
ranks=()
for rank in 0 1; do
    RANK=$rank "$python" "$here/dlio.py" --data data --store "$PWD/store" --batch-size 16 --epochs 12 &
    ranks+=($!)
done
wait -n "${ranks[@]}"
status=$?
if [ $status -ne 0 ]; then
    echo "mpirun: a rank exited with $status, ending the others" >&2
    kill -TERM "${ranks[@]}" 2>/dev/null
    wait
    exit 1
fi
wait
