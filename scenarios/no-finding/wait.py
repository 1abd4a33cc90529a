"""Says that it is ready, and waits to be killed by hand."""

import os
import sys
import time

time.sleep(1.5)
with open(sys.argv[1] + ".new", "w") as file:
    file.write(str(os.getpid()))
os.rename(sys.argv[1] + ".new", sys.argv[1])
time.sleep(60)
