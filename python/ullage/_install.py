"""`ullage.install()`: every loader of this program gets `ullage.context`, with no code changed.

Done at two places: the property through which a DataLoader's iterator (StatefulDataLoader's too) asks for its context;
and torch's iterator itself, through which loaders pass that are no DataLoader (fastai's), or whose class has a property
of its own. torch.multiprocessing itself stays as it is.
"""

from __future__ import annotations

import importlib
import multiprocessing.context
import os
import types
from typing import Any

from ullage import _arena, _reducers
from ullage._context import _Queues, called, context
from ullage._errors import Error

_original: Any = None  # the property
_asked: str | None = None  # the start method that was asked for last


def install(strict: bool = False, method: str | None = None) -> None:
    """From now on every loader with workers, of torch or by torch's iterator, uses the arena. Does nothing with
    `ULLAGE_DISABLE=1`; where it is installed already, a `method` takes the place of the one before.

    Each keeps its start method; with `method` ("zygote", say) they get that one, but for those that ask for "fork" by
    name: their datasets need not be picklable. Where a zygote cannot serve, each has its own again.

    With `strict`, or `ULLAGE_STRICT=1`, it is an error where a tensor of the CPU would go torch's own way, unless its
    storage was shared before (`share_memory_()`).
    """
    global _original, _asked
    if strict:
        os.environ["ULLAGE_STRICT"] = "1"  # workers and subprocesses too
        _reducers.strict = True
    if os.environ.get("ULLAGE_DISABLE") == "1":
        return
    _asked = method or _asked
    if _original is not None:
        return
    try:
        module = importlib.import_module("torch.utils.data.dataloader")
    except ImportError as error:
        raise Error(f"ullage.install() is for programs with torch, and torch cannot be imported: {error}") from error
    loader, iterator = module.DataLoader, module._MultiProcessingDataLoaderIter
    before = loader.multiprocessing_context

    def getter(self: Any) -> Any:
        chosen = before.fget(self)
        return chosen if self.num_workers == 0 else _ours(chosen, _asked)

    def __new__(kind: Any, *args: Any, **kwargs: Any) -> Any:
        # In here, because a frame of ours around `__init__` would stand in its warnings and tracebacks.
        given: Any = args[0] if args else kwargs.get("loader")
        other = hasattr(given, "multiprocessing_context") and not isinstance(given.multiprocessing_context, _Queues)
        ours = _ours(given.multiprocessing_context, _asked) if other else None
        made = object.__new__(kind)
        if isinstance(ours, _Queues):

            def __init__(self: Any, loader: Any, *args: Any, **kwargs: Any) -> None:
                self._shutdown = True  # for its `__del__`: there are no workers yet
                self.__class__ = kind
                kind.__init__(self, _Loader(loader, ours), *args, **kwargs)

            made.__class__ = type(kind.__name__, (kind,), {"__init__": __init__})
        return made

    loader.multiprocessing_context = property(getter, before.fset, before.fdel, before.__doc__)
    iterator.__new__ = __new__
    _original, _arena.expected = before, True


def uninstall() -> None:
    """Loaders made from now on are torch's again."""
    global _original, _asked
    if _original is not None:
        module = importlib.import_module("torch.utils.data.dataloader")
        module.DataLoader.multiprocessing_context = _original
        # Deleted, it would leave a class that takes no arguments.
        module._MultiProcessingDataLoaderIter.__new__ = _new
        _original, _asked, _arena.expected = None, None, False


def _new(kind: Any, *args: Any, **kwargs: Any) -> Any:
    return object.__new__(kind)


class _Loader:
    """A loader as its iterator sees it, with another context."""

    def __init__(self, loader: Any, chosen: Any) -> None:
        self._loader, self.multiprocessing_context = loader, chosen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


def _ours(chosen: Any, method: str | None) -> Any:
    """What a loader gets in place of the context that it has chosen."""
    if isinstance(chosen, _Queues):
        return chosen
    if chosen is None:
        return _named(context(method), "Process")
    own = _method(chosen)
    if own is None and _reducers.strict:
        raise Error(
            f"this loader has a multiprocessing context of its own making ({type(chosen).__name__}), through "
            "which tensors go torch's own way, and ULLAGE_STRICT=1 makes that an error"
        )
    if own is None:
        return chosen
    ours = context(own) if method is None or own == "fork" else context(method, own)
    return _named(ours, chosen.Process.__name__)


def _named(ours: Any, kind: str) -> Any:
    return called(ours, kind) if isinstance(ours, _Queues) else ours  # ULLAGE_DISABLE=1: multiprocessing's own


def _method(chosen: Any) -> str | None:
    """The start method of a context of multiprocessing's own; None for a context of somebody else's making."""
    for kind, method in (
        (multiprocessing.context.ForkContext, "fork"),
        (multiprocessing.context.SpawnContext, "spawn"),
        (multiprocessing.context.ForkServerContext, "forkserver"),
    ):
        if type(chosen) is kind:
            return method
    modules = ("multiprocessing", "torch.multiprocessing")
    is_module = isinstance(chosen, types.ModuleType) and chosen.__name__ in modules
    if is_module or isinstance(chosen, multiprocessing.context.DefaultContext):
        method = chosen.get_start_method()
        return None if method is None else str(method)
    return None
