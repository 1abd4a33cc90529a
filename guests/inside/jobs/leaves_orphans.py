"""Leaves children behind that end by themselves, some before it and some after it, then exits with 77."""

import os
import sys
import time

for index in range(10):
    if os.fork() == 0:
        if os.fork() == 0:
            time.sleep(0.5 + index * 0.3)
            os._exit(index)
        os._exit(0)
time.sleep(2)
sys.exit(77)
