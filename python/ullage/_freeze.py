"""`ullage.freeze(obj)`: forked workers read these objects without a write to them, so that no page is copied.

The walk is in python/native/src/freeze; here is which types it stops at, and what is told of it.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import types
import warnings
import weakref
from functools import lru_cache

from ullage import _native
from ullage._errors import Unsupported


class Frozen:
    """What a call of `freeze` did.

    frozen: how many objects are immortal that were not before. by_type: the same for each type. skipped: how many
    objects of which types were met and left as they were.
    """

    __slots__ = ("by_type", "frozen", "skipped")

    def __init__(self, by_type: dict[str, int], skipped: dict[str, int]) -> None:
        self.by_type = dict(sorted(by_type.items(), key=lambda item: -item[1]))
        self.skipped = dict(sorted(skipped.items(), key=lambda item: -item[1]))
        self.frozen = sum(by_type.values())

    def __repr__(self) -> str:
        def told(counts: dict[str, int]) -> str:
            return ", ".join(f"{count:,} {name}" for name, count in counts.items())

        text = f"{self.frozen:,} objects" + (f": {told(self.by_type)}" if self.by_type else "")
        return f"<Frozen {text}{f'; skipped {told(self.skipped)}' if self.skipped else ''}>"


def freeze(obj: object) -> Frozen:
    """Lets forked processes read `obj`, and all that it reaches, without writing to memory.

    CPython counts references inside of each object, so that a forked worker that only reads a list copies its pages,
    one by one. Objects that are frozen are immortal: their counts are not written any more. They are also hidden from
    the garbage collector, and hashes are computed beforehand. They keep their types, and may be used and changed as
    before. Call it where the data are complete and before workers are forked::

        dataset = MyDataset(...)
        print(ullage.freeze(dataset))
        DataLoader(dataset, num_workers=4, multiprocessing_context="fork")

    It goes into containers, instances of classes, and numpy's arrays of objects. It stops at types, modules and what
    they hold, functions and methods, code, frames, generators, weak references, locks, threads, files, sockets,
    loggers, memoryviews and tensors. Returned is how many objects of which types were frozen, and what was skipped.

    It does not help tensors, whose counts lie outside of Python's objects; a RuntimeWarning says so. For these, and
    for workers that are started by spawn or forkserver, use `ullage.share(obj)`.

    Frozen objects live until the process exits, with whatever they hold, whether or not anything refers to them. What
    is put into a frozen container later is not frozen; a second `freeze` looks into `obj` itself again, but into no
    other container that was frozen before.

    What still writes to a page:

    - a change of an object, naturally;
    - a string with characters beyond ASCII, when its UTF-8 is first asked for (pickle does, tokenizers do): it is kept
      beside the string;
    - `vars(x)`, `x.__dict__`, `copy.copy(x)`, and pickling of an instance of a class: the dictionary is made then;
    - extension modules built for Python before 3.12 (some abi3 wheels), which count references as ever;
    - objects that keep an answer when first asked: `functools.cached_property`, the text and parts of a `pathlib`
      path, the hash of a `datetime`, of a tuple (Python 3.14), of more than 4 KiB of str or bytes. Ask before freezing;
    - a new weak reference to an object, a buffer of a bytearray, the position of an iterator.

    CPython 3.12, 3.13 and 3.14 with a GIL. Any other raises `ullage.errors.Unsupported`. With `ULLAGE_DISABLE=1`
    nothing is done.
    """
    if os.environ.get("ULLAGE_DISABLE") == "1":
        return Frozen({}, {})
    if not _native.can_freeze():
        raise Unsupported(
            f"ullage.freeze() is for CPython 3.12 to 3.14 with a GIL; {_why_not()}. Use ullage.share(obj) instead: one "
            "copy in shared memory that all workers read, on any Python"
        )
    counts, records = _native.freeze(obj, _stops(), getattr(sys.modules.get("numpy"), "ndarray", None))
    by_type: dict[str, int] = {}
    skipped: dict[str, int] = {"numpy.ndarray of records that hold objects": records} if records else {}
    tensors = 0
    for met, frozen, left in counts:
        if frozen:
            by_type[_name(met)] = by_type.get(_name(met), 0) + frozen
        if left:
            name = "dict of a module" if met is dict else _name(met)
            skipped[name] = skipped.get(name, 0) + left
            tensors += left if issubclass(met, _tensors()) else 0
    if tensors:
        warnings.warn(
            f"ullage.freeze() met {tensors:,} tensors and does not help them: what counts their references lies "
            "outside of Python's objects, and is written whenever a worker reads them. Use ullage.share(obj), with "
            "which they lie in one mapping that all workers read",
            RuntimeWarning,
            stacklevel=2,
        )
    return Frozen(by_type, skipped)


def _why_not() -> str:
    version = ".".join(map(str, sys.version_info[:2]))
    if sys.implementation.name != "cpython":
        return f"this is {sys.implementation.name}"
    if sys.version_info < (3, 12):
        return f"Python {version} has no immortal objects"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return f"this is a free-threaded build of Python {version}, which counts references in another way"
    if sys.abiflags:
        return f"this is a special build of Python {version} ({sys.abiflags!r})"
    return f"how Python {version} marks immortal objects is not known to this version of ullage"


def _name(met: type) -> str:
    module = getattr(met, "__module__", "builtins")
    return met.__qualname__ if module == "builtins" else f"{module}.{met.__qualname__}"


@lru_cache
def _always() -> tuple[type, ...]:
    """Types whose instances are machinery and not data, and those whose reading writes anyway."""
    import _io
    import _thread

    return (
        type,
        types.ModuleType,
        types.FunctionType,
        types.BuiltinFunctionType,
        types.MethodType,
        types.MethodWrapperType,
        types.WrapperDescriptorType,
        types.MethodDescriptorType,
        types.ClassMethodDescriptorType,
        types.GetSetDescriptorType,
        types.MemberDescriptorType,
        type(_always),  # functools.lru_cache's
        property,
        staticmethod,
        classmethod,
        types.CodeType,
        types.FrameType,
        types.TracebackType,
        types.CellType,
        types.GeneratorType,
        types.CoroutineType,
        types.AsyncGeneratorType,
        weakref.ReferenceType,
        weakref.ProxyType,
        weakref.CallableProxyType,
        memoryview,
        _io._IOBase,
        _thread.LockType,
        _thread.RLock,
        _thread._local,
    )


def _stops() -> list[type]:
    found = list(_always())
    for module, name in (("logging", "Filterer"), ("threading", "Thread"), ("_socket", "socket")):
        stop = getattr(sys.modules.get(module), name, None)
        if isinstance(stop, type):
            found.append(stop)
    return found + list(_tensors())


def _tensors() -> tuple[type, ...]:
    torch = sys.modules.get("torch")
    names = ("Tensor", "UntypedStorage", "TypedStorage")
    return tuple(found for name in names if isinstance(found := getattr(torch, name, None), type))
