"""Who wants Python's automatic collection off, for the whole process"""

import gc


class GcLeases:
    def __init__(self):
        self.holders, self.was_enabled = 0, None

    def acquire(self):
        if self.holders == 0:
            self.was_enabled = gc.isenabled()
            gc.collect()
            gc.disable()
        self.holders += 1

    def release(self):
        self.holders -= 1
        if self.holders == 0 and self.was_enabled:
            gc.enable()


LEASES = GcLeases()
