"""Is a list or tuple that the collector lists complete, or is a function of C still filling it?

Such a one has slots without an object, and whoever reads an element of it crashes. They are met wherever the list of
the collector is gone through: unmarshalling makes them by the thousand, `tuple(generator)` runs the program's code in
between, and up to Python 3.11 the collector runs in the midst of all of it. They are filled from the front, so that the
last slot tells.
"""

import gc

import _ullage_common as common

MOST = 50_000  # elements of one that is gone through as a whole, where objects are laid out in another way

_pointer = None  # reads a pointer at an address; False where objects are laid out in another way
_OF_LIST, _OF_TUPLE = object.__basicsize__ + 8, tuple.__basicsize__


def complete(container):
    """Whether its elements may be read. Of a list or tuple only: others are never half there."""
    kind = type(container)
    if kind is not list and kind is not tuple:
        return True
    length = len(container)
    if not length:
        return True
    pointer = _pointer if _pointer is not None else _reader()
    if not pointer:
        # Skips what is missing.
        return length <= MOST and len(gc.get_referents(container)) == length
    return _last(pointer, container, kind, length) != 0


def _last(pointer, container, kind, length):
    items = id(container) + _OF_TUPLE if kind is tuple else pointer(id(container) + _OF_LIST)
    return pointer(items + 8 * (length - 1))


def _reader():
    """Tried out on a list and a tuple that are known, before it is believed."""
    global _pointer
    pointer = common.native.pointer
    one, other = object(), object()
    several, pair = [one, other], (one, other)
    known = pointer(id(several) + 16) == pointer(id(pair) + 16) == 2 if _OF_LIST == 24 else False
    known = known and _last(pointer, several, list, 2) == _last(pointer, pair, tuple, 2) == id(other)
    _pointer = pointer if known else False
    return _pointer
