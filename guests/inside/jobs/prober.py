"""How long mmap, the first touch and munmap take inside a process that holds memory, looked at on an open loop.

    prober.py REPORT MIB SECONDS HERTZ

A probe is due every 1/HERTZ seconds, and its delay counts from when it was due: what waits behind a long delay counts
too. The pages are small ones, so that whoever walks them has as many to walk as on a machine without huge pages.
Writes {"probes", "late" (over 5 ms), "worst_ms", "p99_ms"} as JSON.
"""

import gc
import json
import mmap
import os
import sys
import time

LATE_NS = 5_000_000


def main():
    report, size, seconds, hertz = sys.argv[1], int(sys.argv[2]) << 20, float(sys.argv[3]), float(sys.argv[4])
    held = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    held.madvise(mmap.MADV_NOHUGEPAGE)
    for at in range(0, size, mmap.PAGESIZE):
        held[at] = 1
    gc.disable()
    period, count = int(1e9 / hertz), int(seconds * hertz)
    delays = [0] * count
    now, sleep = time.monotonic_ns, time.sleep
    due = now() + 20 * period
    for index in range(count):
        left = due - now()
        if left > 0:
            sleep(left / 1e9)
        block = mmap.mmap(-1, 65536, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        block[0] = 1
        block.close()
        delays[index] = now() - due
        due += period
    delays.sort()
    with open(report, "w") as out:
        late = sum(delay > LATE_NS for delay in delays)
        worst, p99 = delays[-1] / 1e6, delays[count * 99 // 100] / 1e6
        json.dump({"probes": count, "late": late, "worst_ms": worst, "p99_ms": p99, "pid": os.getpid()}, out)


main()
