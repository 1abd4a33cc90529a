"""Holds memory, and reads a file twice where one is given: what is page cache, and what is not.

hold.py READY MIB [FILE MIB]
"""

import os
import sys
import time

held = bytearray(int(sys.argv[2]) << 20)
held[::4096] = b"x" * (len(held) // 4096)
if len(sys.argv) > 3:
    piece = os.urandom(1 << 20)
    with open(sys.argv[3], "wb", buffering=0) as file:
        for _ in range(int(sys.argv[4])):
            file.write(piece)
        os.fsync(file.fileno())
    for _ in range(2):
        with open(sys.argv[3], "rb", buffering=0) as file:
            while file.read(1 << 20):
                pass
with open(sys.argv[1] + ".new", "w") as file:
    file.write(str(os.getpid()))
os.rename(sys.argv[1] + ".new", sys.argv[1])
time.sleep(600)
