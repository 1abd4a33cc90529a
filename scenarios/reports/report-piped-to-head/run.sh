#!/bin/bash
# Shows the newest files of the bucket, and then counts all.
set -eo pipefail
cd "$(dirname "$0")"
python=${PYTHON:-python3}
"$python" list_files.py --count 3000 | wc -l
"$python" list_files.py --count 3000 | head -n 1500
echo "done"
