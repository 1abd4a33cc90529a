#!/bin/bash
# The dump of a wiki on a pipe, and the extraction of its articles
python=$1
here=$(cd "$(dirname "$0")" && pwd) || exit 1
"$python" "$here/dump.py" | "$python" "$here/extract.py" --processes 3 --output text
statuses=("${PIPESTATUS[@]}")
[ "${statuses[0]}" -eq 0 ] || exit "${statuses[0]}"
exit "${statuses[1]}"
