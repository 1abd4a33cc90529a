#!/bin/sh
here=$(cd "$(dirname "$0")" && pwd)
exec make --no-print-directory -f "$here/Makefile" HERE="$here" PYTHON="${1:-python3}" train
