"""Main is killed while its children hold memory.

With `pdeathsig` the children ask to end with it; with `wait` it is not killed.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time

HOLD = "import time; held = bytearray(b'1') * (20 << 20); time.sleep(float(__import__('sys').argv[1]))"
PR_SET_PDEATHSIG = 1


def end_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


mode = sys.argv[1]
seconds = "2" if mode == "wait" else "60"
before = end_with_parent if mode == "pdeathsig" else None
children = [subprocess.Popen([sys.executable, "-c", HOLD, seconds], preexec_fn=before) for _ in range(2)]
time.sleep(2.5)
if mode == "wait":
    for child in children:
        child.wait()
else:
    os.kill(os.getpid(), signal.SIGKILL)
