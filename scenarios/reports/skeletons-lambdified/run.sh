#!/bin/sh
# Draws equations and trains on them
cd "$(dirname "$0")" || exit 1
OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 exec "$1" generate.py
