#!/bin/bash
# Games of the engine against itself; one engine for all of them
python=$1
here=$(cd "$(dirname "$0")" && pwd)
export OMP_NUM_THREADS=1
coproc engine { exec "$python" "$here/engine.py" --cache 3500; }
pid=$engine_PID
exec 3<&"${engine[0]}" 4>&"${engine[1]}"

answer=
gtp() {
    printf '%s\n' "$*" >&4 || return 1
    local line
    while IFS= read -r line <&3; do
        [ -z "$line" ] && return 0
        answer=$line
    done
    return 1
}

SECONDS=0
games=0
while [ $SECONDS -lt 35 ]; do
    gtp clear_board || exit 1
    for move in 1 2 3 4 5 6 7 8 9 10; do
        if [ $((move % 2)) -eq 1 ]; then color=b; else color=w; fi
        gtp genmove $color || exit 1
    done
    games=$((games + 1))
    echo "game $games, last move $answer"
done
gtp quit
wait $pid
status=$?
echo "engine ended with $status"
exit $status
