#!/bin/bash
# llama-server with its default prompt cache, and completions of ever new prompts
python=$1
here=$(cd "$(dirname "$0")" && pwd)
mkfifo port || exit 2
"$python" "$here/server.py" --port-file port --cache-ram 120 &
server=$!
read -r number < port
"$python" "$here/complete.py" --port "$number" --seconds 32
status=$?
wait "$server" || status=$?
rm -f port
exit $status
