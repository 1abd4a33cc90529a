"""Starts one thread."""

import threading
import time

time.sleep(1.5)
thread = threading.Thread(target=print, args=("runs",))
thread.start()
thread.join()
