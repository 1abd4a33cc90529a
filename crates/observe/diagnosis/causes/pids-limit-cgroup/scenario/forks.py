"""Starts processes that wait; the number is the argument."""

import subprocess
import sys

children = []
try:
    for _ in range(int(sys.argv[1])):
        children.append(subprocess.Popen(["sleep", "20"]))
    print("started", len(children))
finally:
    for child in children:
        child.kill()
        child.wait()
