#!/bin/bash
# The nightly publish of all repositories, ended after two minutes if it hangs.
set -e
cd "$(dirname "$0")"
exec timeout --kill-after=5 120 "${PYTHON:-python3}" publish.py --repositories 330
