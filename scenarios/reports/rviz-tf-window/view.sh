#!/usr/bin/env bash
# Play the robot's transforms into the viewer.
cd "$(dirname "$0")" || exit 2
perl publish.pl 42 | "${1:-python}" viewer.py
