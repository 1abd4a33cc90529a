#!/usr/bin/env bash
# Tokenize a crawl into a binary file with two workers
set -u
python=$1
here=$(cd "$(dirname "$0")" && pwd)
OMP_NUM_THREADS=1 "$python" "$here/preprocess_data.py" \
    --output-prefix crawl \
    --workers 2 \
    --log-interval 500 \
    --append-eod
