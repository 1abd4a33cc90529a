"""A large process that asks many times a second whether its address space is to be had.

    prober.py BYTES [HERTZ]

It forks from a parent that holds the memory, so that it shares all of it, maps, touches and unmaps a page at each
probe, and keeps a new mapping now and then, so that whoever counts them has a reason to. Open loop: a probe's delay
counts from when it was due, so that one long wait delays every probe that was due in it.

Its pages are small ones, so that whoever walks them has as many to walk as where there are no huge pages.

Says `ready PID`, then for each line `SECONDS` of its standard input a line of JSON, and ends with its input.
"""

import array
import contextlib
import gc
import json
import mmap
import os
import sys
import time

RATE = 1000  # probes a second, where nothing else is asked for
KEEP_EVERY = 100  # probes
PAGE = mmap.PAGESIZE
PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
MADV_POPULATE_WRITE = 23  # Linux 5.14
LATE = 0.005


def hold(size):
    area = mmap.mmap(-1, size, flags=PRIVATE)
    with contextlib.suppress(OSError):  # EINVAL: a kernel without huge pages
        area.madvise(mmap.MADV_NOHUGEPAGE)
    try:
        area.madvise(MADV_POPULATE_WRITE)
    except OSError:
        for offset in range(0, size, PAGE):
            area[offset] = 1
    return area


def probe(seconds, rate, kept):
    """Delays of all probes, in the order in which they were due."""
    number = int(seconds * rate)
    delays = array.array("d", bytes(8 * number))
    clock, sleep = time.monotonic, time.sleep
    begun = clock() + 0.01
    for n in range(number):
        due = begun + n / rate
        early = due - clock()
        if early > 0:
            sleep(early)
        area = mmap.mmap(-1, PAGE, flags=PRIVATE)
        area[0] = 1
        area.close()
        delays[n] = clock() - due
        if n % KEEP_EVERY == 0:
            # Of two kinds in turn: neighbours of one kind would be one mapping.
            rights = mmap.PROT_READ if n % (2 * KEEP_EVERY) else mmap.PROT_READ | mmap.PROT_WRITE
            kept.append(mmap.mmap(-1, PAGE, flags=PRIVATE, prot=rights))
    return delays


def summary(delays):
    """What they show; an episode is a run of late probes."""
    late = [delay > LATE for delay in delays]
    episodes = sum(now and not before for before, now in zip([False, *late], late))
    ordered = sorted(delays)
    at = {f"p{share:g}": ordered[min(int(share / 100 * len(ordered)), len(ordered) - 1)] for share in (50, 99, 99.9)}
    return {"probes": len(delays), "late": sum(late), "episodes": episodes, "longest": ordered[-1], **at}


def main():
    area, rate = hold(int(sys.argv[1])), int(sys.argv[2]) if sys.argv[2:] else RATE
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    gc.disable()
    kept = [area]
    print("ready", os.getpid(), flush=True)
    for line in sys.stdin:
        print(json.dumps(summary(probe(float(line), rate, kept))), flush=True)


if __name__ == "__main__":
    main()
