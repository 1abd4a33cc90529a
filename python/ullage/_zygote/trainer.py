"""In the trainer: from which zygote does a process come, and how does it end?

One zygote for each set of shared parts, kept for the next iterator as long as the dataset lives; where that is a list,
or something else that cannot be watched, as one of the last two of that kind. The surprise: where the parts have
changed a zygote cannot be told so, because what is frozen is never freed: it goes with its last worker, and another
takes over.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import threading
import warnings
import weakref
from multiprocessing import popen_forkserver, popen_spawn_posix, process, reduction, spawn, util
from multiprocessing.context import set_spawning_popen
from typing import Any

from ullage import _context
from ullage._died import how_it_ended
from ullage._zygote.messages import Own, Passed, send
from ullage._zygote.packing import Packed, Parts
from ullage._zygote.zygote import Ended, Refused, Zygote

_UNWATCHED = 2

_lock = threading.RLock()
_zygotes: list[Zygote] = []  # the one that was used last is the last
_leaving: list[Zygote] = []
_spare: Zygote | None = None
_last: tuple[weakref.ref[Any], tuple[int, ...], Zygote] | None = None
_refused = False


def prepare() -> None:
    """Lets a zygote import torch while this program goes on; where it has torch, and no zygote."""
    global _spare
    current: Any = process.current_process()
    if "torch" not in sys.modules or current.daemon or getattr(current, "_inheriting", False):
        return
    with _lock, contextlib.suppress(OSError):
        if not _refused and _spare is None and not _zygotes:
            _spare = Zygote()


def start(process_obj: Any) -> Any:
    """Starts a process, from a zygote; by spawn, once one had to refuse."""
    global _refused
    if not _refused:
        try:
            return Popen(process_obj)
        except Refused as refused:
            _refused = True
            with _lock:
                for one in _zygotes:
                    one.close()
                _drop_spare()
            warnings.warn(
                f"processes are started by spawn from now on, because a zygote cannot fork: {refused}",
                RuntimeWarning,
                stacklevel=6,
            )
    with _lock:
        _look_after()
    process_obj._ullage_method = "spawn"
    return popen_spawn_posix.Popen(process_obj)


class Popen(popen_forkserver.Popen):
    """A process that a zygote forked. Its end is told as a fork server tells of its children's."""

    method = "zygote"
    DupFd = Passed  # type: ignore[assignment]
    finalizer: Any

    def _launch(self, process_obj: Any) -> None:
        parts = Parts(process_obj._target, process_obj._args, process_obj._kwargs)
        self._own = parts.own
        with _lock:
            zygote = _zygote_for(parts)
            data = self._pickled(process_obj)
            try:
                self.pid, channel = zygote.fork()
            except Ended as ended:
                _warn(str(ended))
                self.pid, channel = _zygote_for(parts).fork()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it has ended already, as will be seen
            send(channel, data, self._fds)  # type: ignore[attr-defined]
        self._own = {}  # its queues know this process
        self.sentinel = channel.detach()
        self.finalizer = util.Finalize(self, os.close, (self.sentinel,))

    def _pickled(self, process_obj: Any) -> bytes:
        data = io.BytesIO()
        set_spawning_popen(self)
        try:
            for one in (dict(os.environ), spawn.get_preparation_data(process_obj._name), process_obj):
                reduction.dump(one, data)
        finally:
            set_spawning_popen(None)
        return data.getvalue()

    def ship(self, _: Any) -> Own:
        """What of the target and the arguments goes with the process, and not with its zygote."""
        return Own(self._own)


def _zygote_for(parts: Parts) -> Zygote:
    """One that has the shared parts as they are now."""
    global _last
    if _last is not None and parts.iterator is not None:
        event, ids, zygote = _last
        if (event(), ids) == parts.iterator and zygote in _zygotes and not zygote.closed:
            return zygote
    _look_after()
    owner = parts.owner()
    found = _that_has(parts, owner) or _new(parts, owner)
    unwatched = [one for one in _zygotes if not one.owned]
    for one in unwatched[:-_UNWATCHED]:
        one.close()
    _last = None if parts.iterator is None else (weakref.ref(parts.iterator[0]), parts.iterator[1], found)
    return found


def _that_has(parts: Parts, owner: weakref.ref[Any] | None) -> Zygote | None:
    if not _zygotes:
        return None
    now = Packed(parts)
    try:
        for one in reversed(_zygotes):
            if one.packed is not None and one.packed.has_the_same(now):
                one.serves(owner)
                if not one.closed:
                    _zygotes.remove(one)
                    _zygotes.append(one)
                    return one
    finally:
        now.let_go()
    return None


def _new(parts: Parts, owner: weakref.ref[Any] | None) -> Zygote:
    global _spare
    before = [one.packed for one in _zygotes]  # as long as it is known, its memory may serve again
    changes = any([one.serves_no_more(owner) for one in _zygotes])
    one, _spare = _spare or Zygote(), None
    _zygotes.append(one)  # known before it is filled: a fork meanwhile must not hold the pipe open
    one.serves(owner)
    try:
        packed = one.fill(parts)
    except BaseException:
        _zygotes.remove(one)
        raise
    if _context._arena is not None:
        size = 0 if packed.memory is None else packed.memory.size
        _context._arena.travelled(size, packed.encoder.passed_by)
    packed.let_go()
    del before
    if changes:
        with contextlib.suppress(OSError):
            _spare = Zygote()  # it will change again: what comes next can import torch already
    return one


def _look_after() -> None:
    """Forgets those that have ended, and says so where nobody wanted that."""
    for one in list(_zygotes):
        code = None if one.closed else one.ended()
        if one.closed:
            _leaving.append(one)
        elif code is not None:
            one.close()
            _warn(f"the zygote (process {one.pid}) {how_it_ended(code)}")
        if one.closed:
            _zygotes.remove(one)
    _leaving[:] = [one for one in _leaving if one.ended() is None]
    if _spare is not None and _spare.ended() is not None:
        _drop_spare()


def _drop_spare() -> None:
    global _spare
    if _spare is not None:
        _spare.kill()
        _spare = None


def _warn(what: str) -> None:
    warnings.warn(f"{what}; its workers go on, and another is started", RuntimeWarning, stacklevel=9)


def _in_forked_child() -> None:
    # Its parent's zygotes are not its own.
    global _lock, _spare, _last
    _lock = threading.RLock()
    for one in (*_zygotes, *_leaving, *([] if _spare is None else [_spare])):
        one.close()
    _zygotes.clear()
    _leaving.clear()
    _spare = _last = None


os.register_at_fork(after_in_child=_in_forked_child)
