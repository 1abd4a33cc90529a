#!/bin/sh
# The embedding of the shop's products
here=$(dirname "$0")
OMP_NUM_THREADS=1 exec "$1" -u "$here/train.py" --memory_size 48000 --embedding_size 1024 --batch_size 600
