"""Grows to so many MiB, 1 MiB at a time, or until so many seconds are over, and touches every page."""

import sys
import time

kept = []
end = time.monotonic() + float(sys.argv[2])
while len(kept) < int(sys.argv[1]) and time.monotonic() < end:
    kept.append(bytearray(b"\1") * (1 << 20))
    time.sleep(0.01)
while time.monotonic() < end:
    kept[0][:] = b"\2" * len(kept[0])
    time.sleep(0.05)
print("holds", len(kept), "MiB")
