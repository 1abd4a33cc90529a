"""What ullage raises, for programs: nothing of ullage imports this."""

from __future__ import annotations

from ullage._errors import Error, NotInstalled, NotShareable, Unsupported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ullage._died import WorkerDied
    from ullage._pages import NotStorable

__all__ = ["Error", "NotInstalled", "NotShareable", "NotStorable", "Unsupported", "WorkerDied"]


def __getattr__(name: str) -> object:
    # Loaded when they are asked for: they need `queue` and `pickle`, and importing ullage must cost nearly nothing.
    if name == "WorkerDied":
        from ullage._died import WorkerDied

        return WorkerDied
    if name == "NotStorable":
        from ullage._pages import NotStorable

        return NotStorable
    raise AttributeError(f"module 'ullage.errors' has no attribute {name!r}")
