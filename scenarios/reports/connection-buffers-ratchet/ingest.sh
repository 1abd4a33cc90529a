#!/bin/sh
# The database, and the ingest of events into it
python=$1
here=$(dirname "$0")
export OMP_NUM_THREADS=1
mkfifo announced
"$python" "$here/database.py" announced &
database=$!
read -r port < announced
"$python" "$here/ingest.py" "$port"
status=$?
kill -TERM "$database"
wait "$database"
exit $status
