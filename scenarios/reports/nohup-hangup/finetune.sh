#!/bin/bash
# A terminal with a training in the background; it shows the log until the session ends
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
export OMP_NUM_THREADS=1
mkfifo log || exit 1
nohup "$python" -m torch.distributed.run --standalone --nproc-per-node=2 "$here/run.py" \
    --query-max-len 32 --passage-max-len 64 --temperature 0.3 < /dev/null > log &
training=$!
exec 3< log
while read -r line <&3; do
    echo "$line"
    [ "$SECONDS" -ge 27 ] && break
done
kill -HUP "$training"
wait "$training"
status=$?
echo "the training ended with $status"
exit $status
