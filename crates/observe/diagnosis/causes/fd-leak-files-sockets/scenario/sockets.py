"""Opens one pair of sockets for each step; without `leak` it closes them."""

import socket
import sys
import time

kept = []
for _ in range(300):
    pair = socket.socketpair()
    if sys.argv[1] == "leak":
        kept.append(pair)
    else:
        for end in pair:
            end.close()
    time.sleep(0.01)
print("steps", 300)
