#!/bin/bash
# Serves requests for slide features, each of which is withdrawn for another one, and fits a model at the end
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
mkfifo progress || exit 1
exec 3<> progress
: > started
for request in 1 2 3 4; do
  "$python" "$here/extract.py" "slide-$request" progress started &
  extraction=$!
  for _ in 1 2 3 4 5 6; do
    read -r -u 3 line
  done
  echo "request $request is withdrawn at: $line"
  kill -TERM "$extraction"
  wait "$extraction"
done
"$python" "$here/downstream.py"
status=$?
while read -r number; do
  kill -KILL "$number" 2> /dev/null
done < started
exit "$status"
