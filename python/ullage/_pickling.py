"""How an object becomes a message: pickle protocol 5, its large parts beside it, and tensors as rows of numbers.

Nothing here imports torch. What is to be done with its types is entered into `REDUCERS` by `ullage.torch`; plain
tensors need none of them where the torch has DLPack's exchange table (python/native/src/dlpack.rs). The surprise: a
part is named by a number in the pickle and looked up in the message that is being read, so that two tensors over
one storage share it again at the other end.
"""

from __future__ import annotations

import copyreg
import os
import pickle
import sys
import threading
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

from ullage._native import Encoder

# By exact type: (encoder, object) -> what `__reduce__` returns, or NotImplemented.
REDUCERS: dict[type, Callable[[Encoder, Any], Any]] = {}

# With `ULLAGE_STRICT=1` a tensor of the CPU that would go torch's own way is an error.
strict = os.environ.get("ULLAGE_STRICT") == "1"
_depth = threading.local()  # how many messages this thread pickles; counted where it is strict

_table: tuple[int, int, dict[type, Any]] = (0, 0, {})
# Making a pickler costs more than pickling a small batch.
_spare: list[Pickler] = []


def _dispatch_table() -> dict[type, Any]:
    """Reducers that were registered for pickling between processes: multiprocessing's, torch's, the user's."""
    global _table
    extra: dict[type, Any] = ForkingPickler._extra_reducers  # type: ignore[attr-defined]
    if (len(extra), len(copyreg.dispatch_table)) != _table[:2]:
        _table = len(extra), len(copyreg.dispatch_table), {**copyreg.dispatch_table, **extra}
    return _table[2]


class Pickler(pickle.Pickler):
    """Pickles into an encoder, which collects storages and buffers meanwhile; or into a file, beside the encoder."""

    def __init__(self, file: Any = None) -> None:
        self.encoder = Encoder(REDUCERS)
        super().__init__(self.encoder if file is None else file, 5, buffer_callback=self.encoder.out_of_band)
        self.reducer_override = self.encoder.reduce  # type: ignore[method-assign]


def load_torch() -> None:
    """Lets torch's types travel, once the program has torch."""
    if "torch" in sys.modules and "ullage.torch" not in sys.modules:
        import ullage.torch  # noqa: F401


def dump(obj: Any, pickler: Pickler | None = None) -> Pickler:
    """A pickler whose encoder has the object; to be given to `done` after use, where it was none of the caller's."""
    load_torch()
    if pickler is None:
        pickler = _spare.pop() if _spare else Pickler()
    pickler.dispatch_table = _dispatch_table()
    if not strict:
        pickler.dump(obj)
        return pickler
    before: int = getattr(_depth, "messages", 0)
    _depth.messages = before + 1
    try:
        pickler.dump(obj)
    finally:
        _depth.messages = before
    return pickler


def forbids_torch() -> bool:
    """True where this thread pickles a message, and it is strict."""
    return strict and getattr(_depth, "messages", 0) > 0


def done(pickler: Pickler) -> None:
    """Lets go what was pickled."""
    pickler.encoder.clear()
    pickler.clear_memo()
    _spare.append(pickler)
