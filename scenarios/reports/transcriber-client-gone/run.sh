#!/bin/bash
# The transcription server, and microphones one after the other
python=$1
here=$(dirname "$0")
export OMP_NUM_THREADS=1
mkfifo server.port
"$python" "$here/server.py" server.port &
server=$!
read -r port < server.port
"$python" "$here/microphone.py" "$port" --chunks 50
"$python" "$here/microphone.py" "$port" --chunks 50
"$python" "$here/microphone.py" "$port" --chunks 50 --cut 30
"$python" "$here/microphone.py" "$port" --chunks 50 --last
wait "$server"
status=$?
echo "server ended with $status"
exit $status
