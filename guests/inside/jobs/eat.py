"""Touches memory in steps of 8 MiB: `eat.py AMOUNT [PER_SECOND] [child|late-child]`, AMOUNT and PER_SECOND in MiB.

AMOUNT may be `all`. With `child`, a child process does it, and the main notices that it died, as a training loop
would; with `late-child` it starts after 3 s, when ticks have become seldom.
"""

import os
import sys
import time

STEP = 8 << 20


def eat(amount, per_second):
    held = []
    while amount is None or len(held) * STEP < amount:
        held.append(b"x" * STEP)
        time.sleep(STEP / per_second)
    time.sleep(1.5)
    return len(held)


amount = None if sys.argv[1] == "all" else int(sys.argv[1]) << 20
per_second = (int(sys.argv[2]) if len(sys.argv) > 2 else 64) << 20
if "late-child" in sys.argv:
    time.sleep(3)
if "child" in sys.argv or "late-child" in sys.argv:
    pid = os.fork()
    if pid == 0:
        eat(amount, per_second)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    if status:
        raise RuntimeError(f"worker {pid} exited unexpectedly")
else:
    eat(amount, per_second)
print("ate it all")
