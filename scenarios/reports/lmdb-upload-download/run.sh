#!/bin/sh
# Uploads the streams, and reads them back
set -e
here=$(dirname "$0")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1" "$here/streams.py" upload "$folder/data.mdb"
"$1" "$here/streams.py" download "$folder/data.mdb"
