"""The arena of this process, those of others that it has come to know, and how a new process gets to know one."""

from __future__ import annotations

import os
from multiprocessing.reduction import DupFd
from typing import Any

from ullage import _native

_arena: _native.Arena | None = None
_arena_maker = -1
_arenas: dict[tuple[int, int], _native.Arena] = {}
# `ullage.install()` was called: loaders use the arena, once there is one.
expected = False


def arena() -> _native.Arena:
    """The arena of this process: made at its first use, inherited by forks."""
    global _arena, _arena_maker
    if _arena is None:
        _arena = _native.Arena()
        _arena_maker = os.getpid()
        _arenas[_arena.identity] = _arena
    return _arena


def sent(copied: int, passed_by: int) -> None:
    """Counts bytes of a dataset: copied for the workers, and in segments of torch's own."""
    if _arena is not None:
        _arena.travelled(copied, passed_by)


def travelled() -> dict[str, int] | None:
    """Bytes of messages so far, of all processes that use the arena which this process made: `copied` into it, handed
    over `in_place`, and `passed_by` in segments of torch's own; and of address space, `reserved` in each of them. Zeros
    where it is expected and no loader has asked for it; None where it is not."""
    names = ("copied", "in_place", "passed_by", "reserved")
    if _arena is None:
        return dict.fromkeys(names, 0) if expected else None
    if _arena_maker != os.getpid():
        return None
    report = _arena.report()
    return {name: report[name] for name in names}


def retire(address: int) -> None:
    """Bytes at `address` are about to be moved: where they are a block of an arena, it is never used again."""
    for one in _arenas.values():
        one.retire(address)


class Handle:
    """An arena on its way to another process: pickled once, however many queues are of it, because a descriptor
    can be passed to a new process once only."""

    def __init__(self, arena: _native.Arena) -> None:
        self.arena = arena

    def __reduce__(self) -> Any:
        return _attach, (DupFd(self.arena.fileno()),)


_handles: dict[tuple[int, int], Handle] = {}


def handle(one: _native.Arena) -> Handle:
    """Its handle, always the same."""
    return _handles.setdefault(one.identity, Handle(one))


def _attach(passed: Any) -> Handle:
    fd = passed.detach()
    try:
        stat = os.fstat(fd)
        known = _arenas.get((stat.st_dev, stat.st_ino))
        if known is None:
            known = _native.Arena.attach(fd)
            _arenas[known.identity] = known
    finally:
        os.close(fd)
    return handle(known)
