#!/bin/bash
# A training in a queue for jobs that may be preempted: it is ended after its third save, and started again later.
cd "$(dirname "$0")" || exit
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_NUM_THREADS=1
mkfifo "$work/log"
"$python" train.py --folder "$work/checkpoints" > "$work/log" &
training=$!
saves=0
while read -r line; do
    echo "$line"
    case $line in
        latest*)
            saves=$((saves + 1))
            if [ $saves -eq 3 ]; then
                echo "preempted"
                kill -KILL $training
                break
            fi
            ;;
    esac
done < "$work/log"
wait $training
echo "requeued"
"$python" train.py --folder "$work/checkpoints"
