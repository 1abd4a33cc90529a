"""Reserves 1 TiB of addresses and uses none of them."""

import mmap
import time

reserved = mmap.mmap(-1, 1 << 40, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, prot=mmap.PROT_READ)
time.sleep(2.5)
print("addresses", len(reserved))
