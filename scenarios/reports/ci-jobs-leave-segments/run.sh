#!/bin/bash
# A runner of CI jobs in one long-lived container: each job starts the server, waits for its answers, and kills the group.
here=$(dirname "$0")
for job in 1 2 3 4 5 6 7 8; do
  rm -f ready
  setsid "${PYTHON:-python3}" "$here/server.py" &
  server=$!
  while kill -0 $server 2>/dev/null && [ ! -e ready ]; do sleep 0.2; done
  if [ ! -e ready ]; then
    wait $server
    status=$?
    echo "job $job: the server did not start, status $status"
    exit 1
  fi
  echo "job $job: passed"
  kill -9 -- -$server
  wait $server 2>/dev/null
done
