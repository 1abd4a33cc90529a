"""Grows to a given number of MiB, 4 MiB at a time, and touches every page; with `works`, it then goes through what it
holds, for three times as long."""

import sys
import time

kept = []
for _ in range(int(sys.argv[1]) // 4):
    kept.append(bytearray(b"\1") * (4 << 20))
    time.sleep(0.02)
for block in 3 * kept if sys.argv[2:] == ["works"] else []:
    block.count(0)
    time.sleep(0.02)
print("holds", len(kept) * 4, "MiB")
