#!/bin/bash
# `make train`, as the project's README says
here=$(cd "$(dirname "$0")" && pwd)
exec make --no-print-directory -f "$here/Makefile" PYTHON="$1" HERE="$here" train
