#!/bin/bash
# A service that writes shards to disk and reads them back, in a container whose `docker stats` is always near its limit.
set -eu -o pipefail
python=${1:-python3}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for shard in 0 1 2 3 4 5 6 7; do
    head -c 96M /dev/urandom > "$work/shard_$shard.bin"
done
for pass in 1 2 3 4 5; do
    for shard in 0 1 2 3 4 5 6 7; do
        cat "$work/shard_$shard.bin" | "$python" "$here/count.py" "pass $pass shard $shard" | tee -a "$work/log.txt"
    done
done
echo "$(wc -l < "$work/log.txt") shards counted"
