#!/usr/bin/env bash
# Starts the speech server, and then the soak that asks it for all voices
python=${1:-python}
here=$(cd "$(dirname "$0")" && pwd)

"$python" "$here/server.py" tts.socket &
server=$!
"$python" "$here/soak.py" tts.socket
status=$?
wait "$server" || status=$?
exit "$status"
