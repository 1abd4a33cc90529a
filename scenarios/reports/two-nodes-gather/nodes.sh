#!/bin/bash
# Starts the evaluation on two nodes, as the scheduler's batch script does with one launcher for each.
cd "$(dirname "$0")" || exit
python=${PYTHON:-python3}
export OMP_NUM_THREADS=1
port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
for node in 0 1; do
    "$python" -m torch.distributed.run --nnodes=2 --node-rank=$node --nproc-per-node=1 \
        --master-addr=127.0.0.1 --master-port="$port" evaluate.py --tasks mmstar,ai2d &
    launchers+=($!)
done
status=0
for launcher in "${launchers[@]}"; do
    wait "$launcher" || status=1
done
exit $status
