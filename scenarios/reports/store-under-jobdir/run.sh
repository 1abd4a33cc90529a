#!/bin/bash
# A job step of the cluster: each job has a folder of its own for temporary files
export OMP_NUM_THREADS=1
export TMPDIR="$PWD/net/people/plgrid/poebhkiwa/slurm_jobdir/1355700/tmp.t0016"
mkdir -p "$TMPDIR"
"$1" "$(dirname "$0")/train_ppo.py"
status=$?
echo "job step 1355700.0 ended with $status"
exit $status
