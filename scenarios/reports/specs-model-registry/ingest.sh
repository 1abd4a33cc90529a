#!/bin/bash
# The feed of the content platform, and the ingestion behind it
python=$1
cd "$(dirname "$0")" || exit 1
export OMP_NUM_THREADS=1
set -o pipefail
"$python" feed.py --items 3300 | "$python" ingest.py
