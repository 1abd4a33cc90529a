#!/bin/bash
# Features are extracted by several commands at once, each with its share of the captions.
python=$1
here=$(cd "$(dirname "$0")" && pwd)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
export OMP_NUM_THREADS=1
total=4800
shards=3
step=$((total / shards))
pids=()
for ((n = 0; n < shards; n++)); do
    "$python" "$here/job.py" --start_index $((n * step)) --end_index $(((n + 1) * step)) --save_root "$out" &
    pids+=($!)
done
status=0
for pid in "${pids[@]}"; do
    wait "$pid" || status=1
done
echo "$(ls "$out" | wc -l) files, status $status"
exit $status
