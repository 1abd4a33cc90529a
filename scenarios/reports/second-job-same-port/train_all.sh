#!/bin/bash
# The acoustic model on the first two devices, and the vocoder on the others, at the same time.
here=$(dirname "$0")
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_NUM_THREADS=1 MASTER_ADDR=127.0.0.1 WORLD_SIZE=2
MASTER_PORT=$("$python" -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
export MASTER_PORT

mkfifo "$work/ready"
for rank in 0 1; do
    RANK=$rank "$python" "$here/train.py" glow_tts 100 >"$work/ready$rank" &
    first[rank]=$!
done
until grep -q "step 20" "$work/ready0" 2>/dev/null; do
    read -r -t 0.5 <>"$work/ready"
done

RANK=0 "$python" "$here/train.py" vocoder 100
status=$?
echo "vocoder: rank 0 ended with $status"
wait "${first[@]}"
echo "glow_tts ended with $?"
exit $((status != 0))
