"""Writes temporary files of 1 MiB until there are 24."""

import tempfile
import time

kept = []
for _ in range(24):
    file = tempfile.NamedTemporaryFile(prefix="cache-")
    file.write(b"\1" * (1 << 20))
    file.flush()
    kept.append(file)
    time.sleep(0.05)
print("wrote", len(kept))
