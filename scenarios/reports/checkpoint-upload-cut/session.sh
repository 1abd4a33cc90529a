#!/bin/bash
# Train, keep the checkpoint on the drive, and train on from there in the next session
python=$1
here=$(cd "$(dirname "$0")" && pwd)
export OMP_NUM_THREADS=1
work=$PWD/session
mkdir -p "$work/drive" "$work/parts"

"$python" "$here/train.py" --seconds 20 --save "$work/last.ckpt" || exit 2

# The upload runs in the background of the session, in parts, for as long as the session lasts
split -b 4M -d "$work/last.ckpt" "$work/parts/last.ckpt."
count=$(ls "$work/parts" | wc -l)
sent=0
for part in "$work"/parts/*; do
    [ $sent -ge $((count - 3)) ] && break
    cat "$part" >> "$work/drive/last.ckpt"
    sent=$((sent + 1))
done
echo "the session ended"

"$python" "$here/train.py" --seconds 20 --resume "$work/drive/last.ckpt"
status=$?
echo "training ended with $status"
exit $status
