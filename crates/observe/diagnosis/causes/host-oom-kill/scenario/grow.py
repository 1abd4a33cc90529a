"""Takes memory until there is none: only for a virtual machine. With a number: only so many MiB."""

import sys
import time

limit = int(sys.argv[1]) if len(sys.argv) > 1 else 1 << 20
kept = []
while len(kept) * 4 < limit:
    kept.append(bytearray(b"\1") * (4 << 20))
    time.sleep(0.01)
print("holds", len(kept) * 4, "MiB")
