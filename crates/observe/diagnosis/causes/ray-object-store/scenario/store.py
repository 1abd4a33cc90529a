"""Fails as Ray does: its object store is full (full), or an object was lost (lost)."""

import sys
import time


class ObjectStoreFullError(Exception):
    """As ray.exceptions names it."""


class ObjectLostError(Exception):
    """As ray.exceptions names it."""


time.sleep(2)
if sys.argv[1] == "full":
    raise ObjectStoreFullError("Failed to put object 00ffffffffff in object store because it is full.")
raise ObjectLostError("Failed to retrieve object 00ffffffffff. The object has been evicted.")
