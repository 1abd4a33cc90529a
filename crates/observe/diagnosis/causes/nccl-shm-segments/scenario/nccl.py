"""Fails as NCCL does: without room for its segments in /dev/shm (full), or for want of a network (network)."""

import sys
import time


class DistBackendError(RuntimeError):
    """As torch.distributed names it."""


FIRST = (
    "NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1333, unhandled system error "
    "(run with NCCL_DEBUG=INFO for details), NCCL version 2.18.1\nncclSystemError: System call (e.g. socket, "
    "malloc) or external library call failed or device error.\nLast error:\n"
)
LAST = {
    "full": "Error while creating shared memory segment /dev/shm/nccl-WU88OE (size 9637888), error: "
    "No space left on device (28)",
    "network": "socketStartConnect: Connect to 10.0.0.2<47163> failed : Software caused connection abort",
}
if sys.argv[1] == "full":
    try:
        with open("/dev/shm/nccl-WU88OE", "wb", buffering=0) as segment:
            while True:
                segment.write(bytes(1 << 20))
    except OSError:
        pass
time.sleep(2)
raise DistBackendError(FIRST + LAST[sys.argv[1]])
