#!/bin/bash
# Both scenarios of the benchmark, one after the other
python=$1
here=$(dirname "$0")
export OMP_NUM_THREADS=1
for scenario in Offline Server; do
    echo "scenario $scenario"
    "$python" "$here/main.py" --scenario "$scenario" || exit 1
done
echo "both scenarios done"
