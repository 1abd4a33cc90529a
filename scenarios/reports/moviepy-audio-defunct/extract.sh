#!/bin/bash
# Log-mel features of all clips of a caption dataset
python=$1
here=$(dirname "$0")
export OMP_NUM_THREADS=1
"$python" "$here/extract_audio.py" --clips clips --out features.npy
status=$?
if [ $status -ne 0 ]; then
    echo "extraction failed with status $status" >&2
fi
exit $status
