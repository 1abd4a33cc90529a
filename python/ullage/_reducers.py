"""Which objects does ullage pickle in a way of its own, and is it an error where a tensor goes torch's own way instead?

What is to be done with torch's types is entered into `REDUCERS` by `ullage.torch`, so that nothing here imports torch.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

from ullage._native import Encoder

# By exact type: (encoder, object) -> what `__reduce__` returns, or NotImplemented.
REDUCERS: dict[type, Callable[[Encoder, Any], Any]] = {}

# With `ULLAGE_STRICT=1` a tensor of the CPU that would go torch's own way is an error.
strict = os.environ.get("ULLAGE_STRICT") == "1"
_depth = threading.local()  # how many messages this thread pickles; counted where it is strict


@contextlib.contextmanager
def pickling() -> Iterator[None]:
    """This thread pickles a message meanwhile."""
    before: int = getattr(_depth, "messages", 0)
    _depth.messages = before + 1
    try:
        yield
    finally:
        _depth.messages = before


def forbids_torch() -> bool:
    """True where this thread pickles a message, and it is strict."""
    return strict and getattr(_depth, "messages", 0) > 0
