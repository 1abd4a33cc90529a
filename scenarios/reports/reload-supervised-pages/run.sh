#!/bin/bash
# The application under its supervisor, and the browsers
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
exec 3< <(exec "$python" "$here/app.py")
supervisor=$!
read -r -u 3 port
"$python" "$here/browsers.py" "$port"
status=$?
kill -TERM "$supervisor"
wait "$supervisor"
exit $status
