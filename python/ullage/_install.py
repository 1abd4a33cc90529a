"""`ullage.install()`: every DataLoader of this program gets `ullage.context`, with no code changed.

Done at one place: the property through which a DataLoader's iterator (StatefulDataLoader's too) asks for its
context. torch.multiprocessing itself stays as it is.
"""

from __future__ import annotations

import importlib
import multiprocessing.context
import os
from typing import Any

from ullage import _pickling
from ullage._context import _Queues, context
from ullage.errors import Error

_original: Any = None


def install(strict: bool = False, method: str | None = None) -> None:
    """From now on every DataLoader with workers uses the arena. Does nothing where it is installed already, and with
    `ULLAGE_DISABLE=1`.

    Each keeps its start method; with `method` ("zygote", say) they get that one, but for those that ask for "fork" by
    name: their datasets need not be picklable.

    With `strict`, or `ULLAGE_STRICT=1`, it is an error where a tensor of the CPU would go torch's own way, unless its
    storage was shared before (`share_memory_()`).
    """
    global _original
    if strict:
        os.environ["ULLAGE_STRICT"] = "1"  # workers and subprocesses too
        _pickling.strict = True
    if _original is not None or os.environ.get("ULLAGE_DISABLE") == "1":
        return
    try:
        loader = importlib.import_module("torch.utils.data.dataloader").DataLoader
    except ImportError as error:
        raise Error(f"ullage.install() is for programs with torch, and torch cannot be imported: {error}") from error
    before = loader.multiprocessing_context

    def getter(self: Any) -> Any:
        chosen = before.fget(self)
        if self.num_workers == 0 or isinstance(chosen, _Queues):
            return chosen
        if chosen is None:
            return context(method)
        own = _method(chosen)
        if own is None and _pickling.strict:
            raise Error(
                f"this DataLoader has a multiprocessing context of its own making ({type(chosen).__name__}), through "
                "which tensors go torch's own way, and ULLAGE_STRICT=1 makes that an error"
            )
        if own is None:
            return chosen
        return context(own if method is None or own == "fork" else method)

    loader.multiprocessing_context = property(getter, before.fset, before.fdel, before.__doc__)
    _original = before


def uninstall() -> None:
    """Loaders made from now on are torch's again."""
    global _original
    if _original is not None:
        importlib.import_module("torch.utils.data.dataloader").DataLoader.multiprocessing_context = _original
        _original = None


def _method(chosen: Any) -> str | None:
    """The start method of a context of multiprocessing's own; None for a context of somebody else's making."""
    for kind, method in (
        (multiprocessing.context.ForkContext, "fork"),
        (multiprocessing.context.SpawnContext, "spawn"),
        (multiprocessing.context.ForkServerContext, "forkserver"),
    ):
        if type(chosen) is kind:
            return method
    if isinstance(chosen, multiprocessing.context.DefaultContext):
        method = chosen.get_start_method()
        return None if method is None else str(method)
    return None
