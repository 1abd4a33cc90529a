"""What ullage raises. Every message says what to do."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ullage._died import WorkerDied as WorkerDied
    from ullage._share import NotStorable as NotStorable


class Error(Exception):
    """Base of all exceptions of ullage."""


class NotInstalled(Error):
    """The `ullage` command was not found."""


class Unsupported(Error):
    """What was asked for cannot be done on this machine or in this way."""


class NotShareable(Error, ValueError):
    """An object has a part that `ullage.share` cannot take; the message says where and what to do instead."""


def __getattr__(name: str) -> object:
    # Loaded when they are asked for: they need `queue` and `pickle`, and importing ullage must cost nearly nothing.
    if name == "WorkerDied":
        from ullage._died import WorkerDied

        return WorkerDied
    if name == "NotStorable":
        from ullage._share import NotStorable

        return NotStorable
    raise AttributeError(f"module 'ullage.errors' has no attribute {name!r}")
