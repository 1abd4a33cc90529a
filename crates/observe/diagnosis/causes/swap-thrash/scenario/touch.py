"""Touches the pages of so many MiB in random order for so many seconds; with `once`, only the first tenth again and again."""

import mmap
import random
import sys
import time

size = int(sys.argv[1]) << 20
area = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for offset in range(0, size, 4096):
    area[offset] = 1
end = time.monotonic() + float(sys.argv[2])
pages = size // 4096 // (10 if "once" in sys.argv else 1)
choose = random.Random(7)
touched = 0
while time.monotonic() < end:
    for _ in range(200):
        area[choose.randrange(pages) * 4096] = 2
    touched += 200
    if "once" in sys.argv:
        time.sleep(0.01)
print("touched", touched, "pages")
