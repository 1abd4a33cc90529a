"""What is shared, and how do its pages get from one process to another?

A pickle of it holds a handle: the descriptor of the pages for a process that is being started, else where that
descriptor is in `/proc`.
"""

from __future__ import annotations

import abc
import collections.abc
import os
import pickle
import weakref
from multiprocessing.context import get_spawning_popen
from multiprocessing.reduction import DupFd, ForkingPickler
from typing import Any

from ullage import _native
from ullage._errors import Error
from ullage._native import SharedDict, SharedList


class NotStorable(Error, pickle.PicklingError):
    """Shared data would be pickled into what may outlive its processes; the message says what to do instead."""

    __module__ = "ullage.errors"


_attached: weakref.WeakValueDictionary[tuple[int, int], _native.Pages] = weakref.WeakValueDictionary()
# Kept by the pickler for as long as a message is written.
_handles: weakref.WeakValueDictionary[tuple[int, int], Handle] = weakref.WeakValueDictionary()


class Shared(abc.ABC):
    """What `share` returns, and the lists and dicts in it.

    `nbytes` is the size of all that was shared together; `to_python()` copies it out into plain objects.
    """

    nbytes: int

    @abc.abstractmethod
    def to_python(self) -> Any:
        """A copy in plain lists, dicts, arrays and tensors."""


Shared.register(SharedList)
Shared.register(SharedDict)
collections.abc.Sequence.register(SharedList)
collections.abc.Mapping.register(SharedDict)


class Handle:
    """Pages on their way to another process: pickled once a message, for a descriptor is passed to a new process
    only once."""

    def __init__(self, pages: _native.Pages) -> None:
        self.pages = pages

    def __reduce__(self) -> Any:
        if get_spawning_popen() is None:
            raise NotStorable(
                "shared data is pickled to a file or to bytes of your own, which would hold a handle and not the data: "
                "it cannot be loaded once these processes have ended. Store data.to_python(), or keep it out of what "
                "is stored; queues, pipes and the arguments of processes take it as it is"
            )
        return _pass_on(self)

    def __deepcopy__(self, memo: Any) -> Handle:
        return self


def _pass_on(handle: Handle) -> Any:
    """For pickling between processes: multiprocessing's queues and pipes, torch's, and ours."""
    pages = handle.pages
    if get_spawning_popen() is not None:
        return _attach, (pages.identity, DupFd(pages.fileno()), None)
    return _attach, (pages.identity, None, (os.getpid(), pages.fileno()))


ForkingPickler.register(Handle, _pass_on)


def handle_of(pages: _native.Pages) -> Handle:
    """Its handle, always the same as long as it is wanted."""
    return _handles.setdefault(pages.identity, Handle(pages))


def made(pages: _native.Pages) -> Handle:
    """A handle of pages that this process has just made."""
    _attached[pages.identity] = pages
    return handle_of(pages)


def _attach(identity: tuple[int, int], passed: Any, place: tuple[int, int] | None) -> Handle:
    if passed is not None:
        return attach_fd(identity, passed.detach())
    known = _attached.get(identity)
    if known is not None:
        return handle_of(known)
    assert place is not None
    return attach_fd(identity, _fd_of(*place), place)


def attach_fd(identity: tuple[int, int], fd: int, place: tuple[int, int] | None = None) -> Handle:
    """A handle of the pages behind a descriptor, which is closed."""
    try:
        known = _attached.get(identity)
        if known is None:
            stat = os.fstat(fd)
            if (stat.st_dev, stat.st_ino) != identity:
                raise Error(_gone(place))
            known = _native.Pages.map(fd)
            _attached[identity] = known
    finally:
        os.close(fd)
    return handle_of(known)


def _fd_of(pid: int, fd: int) -> int:
    try:
        return os.open(f"/proc/{pid}/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise Error(f"{_gone((pid, fd))} ({error.strerror})") from None


def _gone(place: tuple[int, int] | None) -> str:
    who = "the process that sent it" if place is None else f"process {place[0]}"
    return (
        f"shared data cannot be had from {who}: it has ended, has let the data go, or is another user's or "
        "container's; keep the data there until every receiver has it"
    )
