#!/bin/bash
#$ -N grail_wn18rr
#$ -pe smp 2
#$ -l h_vmem=4G
# The queue turns h_vmem into a limit of the address space
ulimit -v 4194304
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
cd "${SGE_O_WORKDIR:-.}" || exit 1
echo "running on $(uname -n)"
"$1" "$(dirname "$0")/train.py" --dataset WN18RR_v1 --hops 1 2
status=$?
echo "train.py ended with $status"
exit $status
