"""An exception that has nothing to do with memory."""

import time

time.sleep(1)
raise ValueError("learning rate must be positive")
