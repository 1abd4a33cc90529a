#!/bin/bash
# Two ranks as mpirun starts them: OMPI_COMM_WORLD_RANK in the environment and no launcher of torch's.
here=$(dirname "$0")
export OMPI_COMM_WORLD_SIZE=2
for rank in 0 1; do
  OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_LOCAL_RANK=$rank "${PYTHON:-python3}" "$here/rank.py" &
done
wait
