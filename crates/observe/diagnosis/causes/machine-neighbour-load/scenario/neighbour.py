"""Waits, then takes memory until only a share of the machine's is available, and holds it: neighbour.py PERCENT.

Only for a virtual machine. Should the kernel run short all the same, this is the process to end.
"""

import sys
import time

least = int(sys.argv[1]) / 100
WAIT_S, HOLD_S = 4, 40


def available():
    with open("/proc/meminfo") as file:
        sizes = {line.split(":")[0]: int(line.split()[1]) for line in file}
    return sizes["MemAvailable"] / sizes["MemTotal"]


with open("/proc/self/oom_score_adj", "w") as file:
    file.write("1000")
time.sleep(WAIT_S)
kept = []
while available() > least:
    kept.append(bytearray(b"\1") * (2 << 20))
    time.sleep(0.01)
time.sleep(HOLD_S)
