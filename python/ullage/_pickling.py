"""How an object becomes a message, and a message an object: pickle protocol 5 with its large parts kept apart.

Nothing here imports torch. What is to be done with its types is entered into `REDUCERS` by `ullage.torch`. The
surprise: a part is named by a number in the pickle and looked up in the message that is being read, so that two
tensors over one storage share it again at the other end.
"""

from __future__ import annotations

import copyreg
import io
import pickle
import sys
import threading
from collections.abc import Callable
from functools import partial
from multiprocessing.reduction import ForkingPickler
from typing import Any

# By exact type: (pickler, object) -> what `__reduce__` returns, or NotImplemented.
REDUCERS: dict[type, Callable[[Pickler, Any], Any]] = {}

# Set in a part's first byte where only one object of the message is made of that storage: the sign bit.
ALONE = -(1 << 63)

# Smaller buffers are cheaper inside the pickle than beside it.
_IN_BAND = 4096


_table: tuple[int, int, dict[type, Any]] = (0, 0, {})


def _dispatch_table() -> dict[type, Any]:
    """Reducers that were registered for pickling between processes: multiprocessing's, torch's, the user's."""
    global _table
    extra: dict[type, Any] = ForkingPickler._extra_reducers  # type: ignore[attr-defined]
    if (len(extra), len(copyreg.dispatch_table)) != _table[:2]:
        _table = len(extra), len(copyreg.dispatch_table), {**copyreg.dispatch_table, **extra}
    return _table[2]


class Pickler(pickle.Pickler):
    """Collects storages and buffers while it pickles."""

    def __init__(self, file: io.BytesIO) -> None:
        # Not a method of its own as the callback: a pickler in a cycle would keep what it pickled until the next
        # garbage collection.
        self.buffers: list[pickle.PickleBuffer] = []
        super().__init__(file, 5, buffer_callback=partial(_out_of_band, self.buffers))
        self.dispatch_table = _dispatch_table()
        # Per storage: itself (kept alive), address, bytes, first and last byte that the message reaches, and whether
        # one object only reaches it.
        self.storages: list[list[Any]] = []
        self._numbers: dict[int, int] = {}

    def storage(self, key: int, storage: Any, address: int, nbytes: int, first: int, last: int) -> int:
        """Number of a storage in this message, of which the bytes from `first` to `last` are reached."""
        first &= ~15  # views of other item sizes may begin elsewhere; every item size divides 16
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.storages)
            self.storages.append([storage, address, nbytes, first, last, True])
            return number
        known = self.storages[number]
        known[5] = False
        if first < last:
            if known[3] == known[4]:
                known[3], known[4] = first, last
            else:
                known[3], known[4] = min(known[3], first), max(known[4], last)
        return number

    def reducer_override(self, obj: Any) -> Any:
        reducer = REDUCERS.get(type(obj))
        return NotImplemented if reducer is None else reducer(self, obj)


def _out_of_band(buffers: list[pickle.PickleBuffer], buffer: pickle.PickleBuffer) -> bool:
    try:
        raw = buffer.raw()
    except BufferError:
        return True  # not contiguous: as pickle does without us
    if raw.nbytes < _IN_BAND:
        return True
    buffers.append(buffer)
    return False


class Reading(threading.local):
    """The message that this thread reads at the moment."""

    message: Message


class Message:
    """The parts of a message, as its pickle names them."""

    __slots__ = ("parts", "storages")

    def __init__(self, parts: list[tuple[Any, int]]) -> None:
        self.parts = parts
        self.storages: dict[int, Any] = {}


reading = Reading()


def load_torch() -> None:
    """Lets torch's types travel, once the program has torch."""
    if "torch" in sys.modules and "ullage.torch" not in sys.modules:
        import ullage.torch  # noqa: F401


def dump(obj: Any) -> tuple[io.BytesIO, Pickler]:
    """The pickle of an object, and what goes beside it."""
    load_torch()
    file = io.BytesIO()
    pickler = Pickler(file)
    pickler.dump(obj)
    return file, pickler


def load(data: Any, parts: list[tuple[Any, int]], storages: int) -> Any:
    """The object of a pickle with its parts: `storages` of them, then its out-of-band buffers."""
    before = getattr(reading, "message", None)
    reading.message = Message(parts)
    try:
        return pickle.loads(data, buffers=[part for part, _ in parts[storages:]])
    finally:
        if before is None:
            del reading.message
        else:
            reading.message = before
