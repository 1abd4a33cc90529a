"""In the trainer: from which zygote does a process come, and how does it end?

One root for the program, which imports once. One zygote for each set of shared parts, a fork of the root, kept for the
next iterator as long as the dataset lives; where that is a list, or something else that cannot be watched, as one of
the last two of that kind. The surprise: where the parts have changed a zygote cannot be told so, because what is frozen
is never freed: it goes with its last worker, and another takes over.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from multiprocessing import popen_forkserver, process, reduction, spawn, util
from multiprocessing.context import set_spawning_popen
from typing import Any

from ullage import _arena
from ullage._died import how_it_ended
from ullage._zygote.messages import Own, Passed, send
from ullage._zygote.packing import Packed, Parts
from ullage._zygote.zygote import Ended, Refused, Root, Zygote

_UNWATCHED = 2

_lock = threading.RLock()
_zygotes: list[Zygote] = []  # the one that was used last is the last
_root: Root | None = None
_last: tuple[weakref.ref[Any], tuple[int, ...], Zygote] | None = None
_refused = False


def prepare() -> None:
    """Lets the root import torch while this program goes on; where it has torch, and no root."""
    global _root
    current: Any = process.current_process()
    if "torch" not in sys.modules or current.daemon or getattr(current, "_inheriting", False):
        return
    with _lock, contextlib.suppress(OSError):
        if not _refused and _root is None:
            _root = Root()


def start(process_obj: Any, otherwise: str | None, popen_of: Callable[[str], Any]) -> Any:
    """Starts a process, from a zygote; once one had to refuse, by the method `otherwise` (the program's own), with what
    `popen_of` gives for it."""
    global _refused
    method = otherwise or multiprocessing.get_start_method()
    if not _refused:
        try:
            return Popen(process_obj)
        except Refused as refused:
            _refused = True
            with _lock:
                for one in _zygotes:
                    one.close()
                _drop_root()
            warnings.warn(
                f"processes are started by {method} from now on, because a zygote cannot fork: {refused}",
                RuntimeWarning,
                stacklevel=6,
            )
    with _lock:
        _look_after()
    process_obj._ullage_method = method
    return popen_of(method)(process_obj)


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
    before = [one.packed for one in _zygotes]  # as long as it is known, its memory may serve again
    for old in list(_zygotes):
        old.serves_no_more(owner)
    one = _forked_from_root()
    _zygotes.append(one)  # known before it is filled: a fork meanwhile must not hold the pipe open
    one.serves(owner)
    try:
        packed = one.fill(parts)
    except BaseException:
        _zygotes.remove(one)
        raise
    _arena.sent(0 if packed.memory is None else packed.memory.size, packed.encoder.passed_by)
    packed.let_go()
    del before
    return one


def _forked_from_root() -> Zygote:
    global _root
    _root = _root or Root()
    try:
        _root.prepare()
        return Zygote(_root)
    except Ended as ended:
        _drop_root()
        _warn(str(ended))
    except BaseException:
        _drop_root()  # it can do without: what was imported may be put right, as in a notebook
        raise
    _root = Root()
    _root.prepare()
    return Zygote(_root)


def _look_after() -> None:
    """Forgets those that have ended, and says so where nobody wanted that."""
    for one in list(_zygotes):
        code = None if one.closed else one.ended()
        if code is not None:
            one.close()
            _warn(f"the zygote (process {one.pid}) {how_it_ended(code)}")
        if one.closed:
            _zygotes.remove(one)
    code = None if _root is None else _root.ended()
    if _root is not None and code is not None:
        _warn(f"the zygotes' root (process {_root.pid}) {how_it_ended(code)}")
        _drop_root()


def _drop_root() -> None:
    """Its zygotes go on."""
    global _root
    if _root is not None:
        _root.kill()
        _root = None


def _warn(what: str) -> None:
    warnings.warn(f"{what}; its workers go on, and another is started", RuntimeWarning, stacklevel=9)


def _in_forked_child() -> None:
    # Its parent's zygotes are not its own.
    global _lock, _root, _last
    _lock = threading.RLock()
    for one in (*_zygotes, *([] if _root is None else [_root])):
        one.close()
    _zygotes.clear()
    _root = _last = None


os.register_at_fork(after_in_child=_in_forked_child)
