#!/bin/sh
# The add-on's run script: starts the bridge, passes a stop on to it, and waits for its end.
here=$(dirname "$0")
echo "Starting the doorbell bridge"
"${PYTHON:-python3}" -u "$here/bridge.py" &
bridge=$!
trap 'kill -TERM "$bridge"' TERM INT
wait "$bridge"
status=$?
echo "The bridge ended with $status"
exit "$status"
