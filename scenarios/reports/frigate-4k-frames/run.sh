#!/usr/bin/env bash
# The service's start script: no core files, and the app in the foreground.
ulimit -c 0
cd "$(dirname "$0")" || exit 2
exec "${1:-python}" app.py
