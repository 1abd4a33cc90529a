#!/usr/bin/env bash
# Start the server, and work with it for a while.
python=${1:-python}
cd "$(dirname "$0")" || exit 2
export OMP_NUM_THREADS=1
ready=$(mktemp -u)
mkfifo "$ready"
trap 'rm -f "$ready"' EXIT
"$python" server.py "$ready" &
server=$!
read -r port <"$ready"
"$python" client.py "$port"
status=$?
wait $server
exit $status
