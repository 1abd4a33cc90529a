#!/bin/sh
# A federated learning session on one machine
export OMP_NUM_THREADS=1
exec "$1" "$(dirname "$0")/server.py" --clients-per-round 3 3 3 10
