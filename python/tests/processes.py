"""Whether other processes are alive, and waiting for their end."""

import os
import select
import time

AT_MOST_S = 120  # only a failure takes so long


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until_it_waits(pid):
    """Until the main thread of a process sleeps: what was sent to it is taken."""
    while True:
        with open(f"/proc/{pid}/stat") as file:
            if file.read().rpartition(")")[2].split()[0] == "S":
                return
        time.sleep(0.001)


def gone(*pids):
    """Waits for the end of each."""
    for pid in pids:
        try:
            pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        ended, _, _ = select.select([pidfd], [], [], AT_MOST_S)
        os.close(pidfd)
        if not ended:
            return False
    return True
