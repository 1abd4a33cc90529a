"""Collection of garbage at fixed steps, so that no rank stops while the others wait"""

import gc
import time


class GarbageCollection:
    def __init__(self, freq=50):
        if freq < 1:
            raise ValueError("freq must be positive")
        self.freq = freq
        gc.disable()
        self.collect("initial")

    def run(self, step):
        if step > 1 and step % self.freq == 0:
            self.collect(f"step {step}")

    @staticmethod
    def collect(reason, generation=1):
        begin = time.monotonic()
        gc.collect(generation)
        print(f"[gc] {reason}: {1000 * (time.monotonic() - begin):.1f} ms", flush=True)
