"""Works on little for two seconds."""

import time

kept = bytearray(8 << 20)
time.sleep(2)
print("holds", len(kept))
