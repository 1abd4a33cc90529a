#!/bin/bash
# As in the readme: one dataset, one training
python=$1
cd "$(dirname "$0")" || exit 1
export OMP_NUM_THREADS=1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
awk 'BEGIN {
    srand(3)
    for (user = 1; user <= 36000; user++) {
        count = 20 + int(rand() * 220)
        for (i = 0; i < count; i++) printf "%d %d\n", user, 1 + int(rand() * 90000)
    }
}' > "$work/clicks.txt"
"$python" main.py --dataset="$work/clicks.txt" --maxlen=50 --seconds=38
