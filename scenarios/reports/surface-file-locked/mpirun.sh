#!/bin/bash
# mpirun -n 2 plot_surface.py: when a rank fails, the others are ended
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
export OMP_NUM_THREADS=1 OMPI_COMM_WORLD_SIZE=2
ranks=()
for rank in 0 1; do
    OMPI_COMM_WORLD_RANK=$rank "$python" "$here/plot_surface.py" --surface net_surface.h5 &
    ranks+=($!)
done
wait -n
status=$?
if [ $status -ne 0 ]; then
    echo "mpirun: a process exited with non-zero status $status, the job is terminated" >&2
    kill -TERM "${ranks[@]}" 2>/dev/null
fi
wait
exit $status
