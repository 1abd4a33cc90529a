"""How an object becomes a message: its pickle, large arrays beside it, and tensors as rows of numbers.

Nothing here imports torch before the program does; plain tensors need no reducer where the torch has DLPack's exchange
table (python/native/src/dlpack.rs). The surprise: a part is named by a number in the pickle and looked up in the
message that is being read, so that two tensors over one storage share it again at the other end.

The rule: every object is asked for the protocol that torch asks for (ForkingPickler: pickle's default), and so gives
what it gives torch. Protocol 5 with buffers out of band would be quicker, and another answer: arrays stay read-only
and in a foreign byte order there, and classes hand out views where they hand out copies. What travels beside the
pickle is of exact types, in the cases where the result is the same.
"""

from __future__ import annotations

import copyreg
import pickle
import sys
from multiprocessing.reduction import ForkingPickler
from typing import Any

from ullage import _native, _reducers
from ullage._native import Encoder
from ullage._reducers import REDUCERS

# Smaller arrays are cheaper inside the pickle than beside it.
_BESIDE = 4096

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
    """Pickles into an encoder, which collects storages and arrays meanwhile; or into a file, beside the encoder."""

    def __init__(self, file: Any = None) -> None:
        self.encoder = Encoder(REDUCERS)
        super().__init__(self.encoder if file is None else file)
        self.reducer_override = self.encoder.reduce  # type: ignore[method-assign]


def load_torch() -> None:
    """Lets torch's types travel, once the program has torch. Whole when this returns, whichever thread imports it: a
    child that is forked meanwhile has only what is there by then."""
    if "torch" in sys.modules and not REDUCERS:
        import ullage.torch  # noqa: F401


def _load_numpy() -> None:
    numpy = sys.modules.get("numpy")
    if numpy is not None and hasattr(numpy, "ndarray"):
        REDUCERS[numpy.ndarray] = _reduce_array


def _reduce_array(encoder: Encoder, array: Any) -> Any:
    """Arrays whose bytes alone make the same array again: numpy's protocol 4 gives a writable one of native order."""
    dtype, flags = array.dtype, array.flags
    if array.nbytes < _BESIDE or dtype.hasobject or not dtype.isnative or not flags.forc:
        return NotImplemented
    if not flags.writeable and pickle.DEFAULT_PROTOCOL > 4:
        return NotImplemented  # stays read-only there
    if type(array) in _table[2]:
        return NotImplemented  # the program has a reducer of its own
    try:
        number = encoder.buffer(pickle.PickleBuffer(array))
    except ValueError:
        return NotImplemented  # a dtype that numpy gives no buffer of, such as datetime64
    return _array, (number, dtype, array.shape, "C" if flags.c_contiguous else "F")


def _array(number: int, dtype: Any, shape: tuple[int, ...], order: Any) -> Any:
    import numpy

    piece: Any = _native.reading().buffer(number)
    return numpy.frombuffer(piece, dtype).reshape(shape, order=order)


def dump(obj: Any, pickler: Pickler | None = None) -> Pickler:
    """A pickler whose encoder has the object; to be given to `done` after use, where it was none of the caller's."""
    load_torch()
    _load_numpy()
    if pickler is None:
        pickler = _spare.pop() if _spare else Pickler()
    pickler.dispatch_table = _dispatch_table()
    if _reducers.strict:
        with _reducers.pickling():
            pickler.dump(obj)
    else:
        pickler.dump(obj)
    return pickler


def done(pickler: Pickler) -> None:
    """Lets go what was pickled."""
    pickler.encoder.clear()
    pickler.clear_memo()
    _spare.append(pickler)
