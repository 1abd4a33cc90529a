"""Starts a program for each sample and never waits for it; with `run` it waits."""

import subprocess
import sys
import time

kept = []
for _ in range(300):
    if sys.argv[1] == "run":
        subprocess.run(["true"])
    else:
        kept.append(subprocess.Popen(["true"]))
    time.sleep(0.015)
time.sleep(1.5)
print("started", 300)
