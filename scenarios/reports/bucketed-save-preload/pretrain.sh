#!/bin/bash
#SBATCH --job-name=pretrain --nodes=1 --ntasks-per-node=1
# srun would start it on the cluster
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
export OMP_NUM_THREADS=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=6000
"$python" -u "$here/pretrain.py" --save ckpt --save-after 14 --exit-after 26
status=$?
[ $status -eq 0 ] || echo "srun: error: task 0: exited with $status" >&2
exit $status
