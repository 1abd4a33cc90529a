"""Makes pairs of objects that refer to each other and forgets them, for so many seconds."""

import sys
import time


class Node:
    def __init__(self):
        self.payload = bytes(50_000)
        self.other = None


end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    for _ in range(200):
        one, two = Node(), Node()
        one.other, two.other = two, one
    time.sleep(0.005)
