#!/bin/sh
# Runs a command with a /dev/shm of its own, in a mount namespace that the caller made:
#     unshare --mount sh tests/own_shm.sh COMMAND [ARGUMENT...]
set -e
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs /dev/shm
exec "$@"
