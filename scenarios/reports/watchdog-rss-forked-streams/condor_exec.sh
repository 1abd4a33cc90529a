#!/bin/bash
# A slot of the pilot: sets the environment of the site and hands over to the wrapper of the job
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
"$python" "$here/startup.py" --max-rss 1200 -- "$python" "$here/cmsrun.py" --generate 19 --reconstruct 14
status=$?
echo "the job ended with $status"
exit $status
