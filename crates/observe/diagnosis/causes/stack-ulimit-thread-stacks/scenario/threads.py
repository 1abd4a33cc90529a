"""Starts so many threads that wait for each other."""

import sys
import threading
import time

count = int(sys.argv[1])
over = threading.Event()
threads = [threading.Thread(target=over.wait, daemon=True) for _ in range(count)]
time.sleep(1)
for thread in threads:
    thread.start()
    time.sleep(0.02)
over.set()
print("started", count)
