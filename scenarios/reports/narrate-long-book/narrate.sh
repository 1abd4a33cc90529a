#!/bin/bash
# Reads a book aloud, into a compressed file of samples
set -o pipefail
python=$1
export OMP_NUM_THREADS=1
"$python" "$(dirname "$0")/narrate.py" --voice alba | gzip -1 > book.pcm.gz || exit 1
ls -l book.pcm.gz
