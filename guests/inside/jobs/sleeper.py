"""Says its pid in a file and sleeps: a job that is killed by hand."""

import os
import sys
import time

with open(sys.argv[1] + ".new", "w") as file:
    file.write(str(os.getpid()))
os.rename(sys.argv[1] + ".new", sys.argv[1])
time.sleep(float(sys.argv[2]))
