"""Holds the same 40 MiB for a while, as a training does whose steps are all alike."""

import sys
import time

kept = bytearray(b"\1") * (40 << 20)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    sum(kept[:: 1 << 16])
    time.sleep(0.05)
print("held", len(kept) >> 20, "MiB")
