#!/bin/bash
# A controller, and a new version of the deployment every few seconds, as the continuous deployment does it
python=$1
here=$(dirname "$0")
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
exec 3< <("$python" "$here/controller.py")
read -r port <&3
for version in 1 2 3 4 5 6 7 8 9; do
    "$python" "$here/deploy.py" --port "$port" --version "$version" || break
done
"$python" "$here/deploy.py" --port "$port" --shutdown
cat <&3
