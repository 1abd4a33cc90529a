#!/usr/bin/env bash
# Try three learning rates. The first two diverge, so their launchers are stopped.
python=${1:-python}
cd "$(dirname "$0")" || exit 2
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
until=$(($(date +%s) + 40))
port=$((20000 + $$ % 10000))
for rate in 3.0 1.0; do
    "$python" launch.py --nproc 2 --port $port train.py --rate $rate --until $until &
    launcher=$!
    sleep 10
    echo "rate $rate diverges: stop it"
    kill $launcher
    wait $launcher 2>/dev/null
    port=$((port + 1))
done
"$python" launch.py --nproc 2 --port $port train.py --rate 0.1 --until $until
status=$?
sleep 3
exit $status
