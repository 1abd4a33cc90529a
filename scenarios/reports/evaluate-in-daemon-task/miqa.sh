#!/bin/sh
# Starts the server with its task worker, as the container's entry point does
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
OMP_NUM_THREADS=1
export OMP_NUM_THREADS
if "$python" "$here/server.py"; then
    echo "all scans are evaluated"
else
    echo "server failed" >&2
    exit 1
fi
