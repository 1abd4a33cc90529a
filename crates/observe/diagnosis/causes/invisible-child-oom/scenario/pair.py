"""Main starts a child that grows, and never looks at how it ended: main lives on and exits 0."""

import subprocess
import sys
import time

GROW = """
import sys, time
kept = []
for _ in range(int(sys.argv[1]) // 4):
    kept.append(bytearray(b"\\1") * (4 << 20))
    time.sleep(0.02)
"""

child = subprocess.Popen([sys.executable, "-c", GROW, sys.argv[1]])
for _ in range(16):
    time.sleep(0.25)
child.poll()
print("main is done")
