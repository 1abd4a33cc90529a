"""`ullage.share`: one copy of a dataset for all processes of a node, whatever their start method.

    data = ullage.share(records)     # before the DataLoader is made; then let go of `records`

The object is packed once into a sealed memfd (python/native/src/shared), which every process maps: one mapping, one
descriptor. Pickling what is shared sends a handle of a few bytes. The surprise: what small values become is made anew
at every access, so that nothing is written where the pages are.
"""

from __future__ import annotations

import collections.abc
import copy
import dataclasses
import functools
import os
import sys
import types
from collections.abc import Callable
from typing import Any, NoReturn

from ullage import _native, _pages, _pickling
from ullage._errors import Error, NotShareable
from ullage._pages import Shared


class Record(dict):  # type: ignore[type-arg]
    """A dict of a shared list, made anew at each access: it cannot be changed, for nobody would see it."""

    __slots__ = ()

    def _read_only(self, *args: Any, **kwargs: Any) -> NoReturn:
        # A TypeError, for torch's collate takes it as the sign to make a dict of its own.
        raise TypeError("a record of a shared list is read-only: change dict(record) instead")

    __setitem__ = __delitem__ = update = pop = popitem = setdefault = clear = __ior__ = _read_only

    def copy(self) -> dict[Any, Any]:
        """A plain dict."""
        return dict(self)

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> dict[Any, Any]:
        return copy.deepcopy(dict(self), memo)

    def __reduce__(self) -> Any:
        return dict, (dict(self),)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__reduce__()


def share(obj: Any, *, per_node: bool = False) -> Any:
    """Packs a list, tuple, dict, numpy array or tensor, with all that is in it, into memory that processes share.

    What comes back behaves as the read-only sequence, mapping or array that it was: index it, slice it, iterate over
    it, compare it, give it to a DataLoader. It may have in it, nested at will: lists, tuples, dicts, dataclasses,
    named tuples, str, bytes, numbers, None, numpy arrays and scalars, tensors. A dict in a list comes back as a dict
    that cannot be changed; arrays and tensors lie in the shared pages, and a write to one stays in its process.

    With `per_node`, each process of a node that torchrun started calls this in the same order, and all get one copy:
    that of the first of them. `obj` may then be a function without arguments, which only that one calls.

    Raises `ullage.errors.NotShareable`, which names the part that cannot be shared and what to do, and
    `ullage.errors.Error` where the memory is not there. Queues, pipes and arguments of processes carry a handle, to
    processes of the same machine and user; keep what is shared until they have it. Any other pickle of it (a
    checkpoint) raises `ullage.errors.NotStorable`: store `to_python()`.
    """
    if per_node:
        from ullage._node import once_per_node

        return once_per_node(lambda: share(obj() if isinstance(obj, types.FunctionType) else obj))
    if isinstance(obj, Shared):
        return obj
    _pickling.load_torch()
    numpy = sys.modules.get("numpy")
    torch = sys.modules.get("torch")
    is_container = isinstance(obj, (list, tuple, dict)) or dataclasses.is_dataclass(obj)
    is_array = numpy is not None and isinstance(obj, numpy.ndarray)
    if not (is_container or is_array or (torch is not None and isinstance(obj, torch.Tensor))):
        raise NotShareable(f"data cannot be shared: {_advise(obj)}")
    try:
        pages, root = _native.pack(obj, "data")
    except _native.ArenaError as error:
        raise Error(str(error)) from None
    return _open(_pages.made(pages), root)


def _reduce(pages: _native.Pages, at: int, *part: int) -> Any:
    return _open, (_pages.handle_of(pages), at, *part)


def _open(handle: _pages.Handle, at: int, *part: int) -> Any:
    if part:
        return handle.pages.list(at, *part)
    value = handle.pages.value(at)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray):
        from ullage._shared_array import SharedArray

        return SharedArray.over(value, functools.partial(_reduce, handle.pages, at))
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        from ullage.torch.shared import SharedTensor

        return SharedTensor.over(value, functools.partial(_reduce, handle.pages, at))
    return value


def _describe(kind: type) -> Any:
    """Names of the fields of a dataclass or named tuple; a str that says why not; None for other classes."""
    if dataclasses.is_dataclass(kind):
        names = tuple(field.name for field in dataclasses.fields(kind))
    elif issubclass(kind, tuple) and hasattr(kind, "_fields"):
        names = kind._fields
    else:
        return None
    found: Any = sys.modules.get(kind.__module__)
    for part in kind.__qualname__.split("."):
        found = getattr(found, part, None)
    if found is not kind:
        return (
            f"an instance of {kind.__qualname__}, which no other process can import by that name; "
            "define it at the top of a module"
        )
    return names


def _make(kind: Any, names: tuple[str, ...], values: list[Any], plain: bool) -> Any:
    if issubclass(kind, tuple):
        return tuple.__new__(kind, values)
    made: Any = object.__new__(kind if plain else _read_only(kind))
    for name, value in zip(names, values):
        object.__setattr__(made, name, value)
    return made


def _plain(kind: type, values: dict[str, Any]) -> Any:
    return _make(kind, tuple(values), list(values.values()), True)


@functools.cache
def _read_only(kind: Any) -> Any:
    def refuse(self: Any, name: str, value: Any = None) -> NoReturn:
        raise dataclasses.FrozenInstanceError(
            f"cannot change {name!r}: this {kind.__name__} is shared; dataclasses.replace makes a changed copy"
        )

    def reduce(self: Any, protocol: Any = None) -> Any:
        return _plain, (kind, {field.name: getattr(self, field.name) for field in dataclasses.fields(kind)})

    body = {
        "__slots__": (),
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        # So that it equals an instance of the class itself, and dataclasses.replace makes one.
        "__class__": property(lambda self: kind),
        "__setattr__": refuse,
        "__delattr__": refuse,
        "__reduce_ex__": reduce,
    }
    return type(kind.__name__, (kind,), body)


_ADVICE: tuple[tuple[Callable[[Any], bool], str], ...] = (
    (lambda o: hasattr(o, "fileno"), "keep its path, and open it in each worker (worker_init_fn)"),
    (lambda o: isinstance(o, os.PathLike), "use str(path)"),
    (lambda o: callable(o), "keep functions and classes beside the data, on the Dataset"),
    (lambda o: isinstance(o, collections.abc.Set), "use a sorted list, or a dict with None as values"),
    (lambda o: isinstance(o, (bytearray, memoryview)), "use bytes, or a numpy array"),
    (lambda o: isinstance(o, collections.abc.Iterator), "use list(...) of it"),
    (lambda o: isinstance(o, Shared), "it is shared already: keep it beside this data, not in it"),
    (lambda o: isinstance(o, (str, bytes, int, float)), "use a plain str, bytes, int or float, in a list or a dict"),
    (lambda o: isinstance(o, dict), "use dict(...) of it"),
    (lambda o: isinstance(o, list), "use list(...) of it"),
    (lambda o: isinstance(o, tuple), "use tuple(...) of it"),
    (lambda o: hasattr(o, "__array__"), "use numpy.asarray(...) of it"),
    (lambda o: hasattr(o, "__dict__"), "use a dict of its attributes, or make its class a dataclass"),
)


def _advise(obj: Any) -> str:
    advice = next(
        (text for holds, text in _ADVICE if holds(obj)), "leave it out, or make it from its parts in the workers"
    )
    return f"it is an object of type {type(obj).__module__}.{type(obj).__qualname__}; {advice}"


def _tensor_parts(obj: Any) -> Any:
    if "torch" not in sys.modules:
        return None
    from ullage.torch import shared

    return shared.parts(obj)


def _tensor_over(piece: Any, at: int, name: str, shape: tuple[int, ...]) -> Any:
    from ullage.torch import shared

    return shared.over(piece, at, name, shape)


_native.use_shared(
    {
        "record": Record,
        "refused": NotShareable,
        "describe": _describe,
        "advise": _advise,
        "make": _make,
        "tensor_parts": _tensor_parts,
        "tensor_over": _tensor_over,
        "reduce": _reduce,
    }
)
