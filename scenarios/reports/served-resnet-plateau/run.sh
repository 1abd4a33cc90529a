#!/bin/bash
# A frontend starts the model's worker, requests come for a while, and then none.
here=$(dirname "$0")
"${PYTHON:-python3}" "$here/worker.py" worker.sock &
worker=$!
while kill -0 $worker 2>/dev/null && [ ! -S worker.sock ]; do sleep 0.2; done
"${PYTHON:-python3}" "$here/client.py" worker.sock
status=$?
sleep 8
kill $worker
wait $worker 2>/dev/null
exit $status
