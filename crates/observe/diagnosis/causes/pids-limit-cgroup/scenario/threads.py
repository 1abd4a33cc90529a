"""Starts threads that wait; the number is the argument."""

import sys
import threading
import time

done = threading.Event()
time.sleep(0.5)
try:
    for _ in range(int(sys.argv[1])):
        threading.Thread(target=done.wait, args=(20,)).start()
    time.sleep(0.5)
    print("started", sys.argv[1])
finally:
    done.set()
