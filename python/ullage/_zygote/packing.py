"""What the workers of one loader share, its pickle on the way to a zygote, and whether it is still the same.

Shared is all of a process's target and arguments but what is cheap and its own: numbers, short strings, queues,
events. It goes into one pickle, so that a collate_fn that knows the dataset still does. The surprise: that is done
anew for every iterator, and compared with what the zygote has, because nothing tells when a dataset is changed.
"""

from __future__ import annotations

import functools
import hashlib
import os
import stat
import types
import weakref
from collections.abc import Iterator
from multiprocessing.context import set_spawning_popen
from typing import Any

from ullage import _pickling, _shipping
from ullage._zygote.messages import Passed

_SHORT = 4096
# Loops of a loader's worker, of torch and of StatefulDataLoader: what all the workers of an iterator share there.
_LOOPS = ("torch.utils.data._utils.worker", "torchdata.stateful_dataloader.worker")
_SHARED_BY_LOOPS = ("dataset", "dataset_holder", "collate_fn", "init_fn")
_OF_THE_ITERATOR = "done_event"
# Since torch 2.14 the dataset lies in a list of its own for each worker, which takes it out.
_HOLDER = "dataset_holder"
# They live for ever, or are made anew each time.
_NO_OWNERS = (type, types.FunctionType, types.BuiltinFunctionType, types.MethodType, functools.partial)


class Parts:
    """Target and arguments of a process, by place: a number, a keyword, or None for the target."""

    def __init__(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        parts: dict[Any, Any] = {None: target, **dict(enumerate(args)), **kwargs}
        names = _names(target)
        self.shared: dict[Any, Any] = {}
        self.own: dict[Any, Any] = {}
        event = None
        self._holder: Any = None
        for place, part in parts.items():
            name = names[place] if names and isinstance(place, int) else place
            if names and name == _OF_THE_ITERATOR:
                event = part
            if names and name == _HOLDER:
                self._holder = part
            own = place is not None and (name not in _SHARED_BY_LOOPS if names else _is_own(part))
            (self.own if own else self.shared)[place] = part
        # None where the program may have changed something since another process with the same parts was started.
        self.iterator = None if event is None else (event, tuple(map(id, self._held())))

    def _held(self) -> Iterator[Any]:
        """The shared parts; of a holder what lies in it."""
        for part in self.shared.values():
            if part is self._holder and isinstance(part, list):
                yield from part
            else:
                yield part

    def owner(self) -> weakref.ref[Any] | None:
        """The object that lives as long as these parts may be wanted again: a loader's dataset, as a rule."""
        for part in self._held():
            if not isinstance(part, _NO_OWNERS):
                try:
                    return weakref.ref(part)
                except TypeError:
                    continue
        return None


def _names(target: Any) -> tuple[str, ...]:
    """Names of the arguments of a loader worker's loop; none for any other target."""
    if not isinstance(target, types.FunctionType) or target.__module__ not in _LOOPS:
        return ()
    names = target.__code__.co_varnames[: target.__code__.co_argcount]
    known = {_OF_THE_ITERATOR, *_SHARED_BY_LOOPS} - {"dataset", _HOLDER}
    return names if known <= {*names} and {"dataset", _HOLDER} & {*names} else ()


def _is_own(part: Any) -> bool:
    kind = type(part)
    if kind in (str, bytes):
        return len(part) <= _SHORT
    # multiprocessing's queues, locks, connections, and ours.
    return kind in (int, float, complex, bool, type(None)) or (
        f"{kind.__module__}.".startswith(("ullage._context.", "multiprocessing."))
    )


class _Passing:
    """For reducers, the Popen of the process that is being started."""

    DupFd = Passed

    def __init__(self) -> None:
        self.fds: list[int] = []

    def duplicate_for_child(self, fd: int) -> int:
        self.fds.append(fd)
        return len(self.fds) - 1


class _Sink:
    """Where the pickler writes to: a pipe, or only the digest."""

    def __init__(self, pipe: int | None) -> None:
        self.digest = hashlib.sha256()
        self.pipe = pipe

    def write(self, data: Any) -> int:
        self.digest.update(data)
        view = memoryview(data).cast("B")
        if self.pipe is not None:
            at = 0
            while at < len(view):
                at += os.write(self.pipe, view[at:])
        return len(view)


class Packed:
    """Shared parts as they are now. Their pickle went into the pipe, or nowhere; here is what lies beside it."""

    def __init__(self, parts: Parts, pipe: int | None = None) -> None:
        sink, passing = _Sink(pipe), _Passing()
        set_spawning_popen(passing)  # type: ignore[arg-type]
        try:
            self.encoder = _pickling.dump(parts.shared, _pickling.Pickler(sink)).encoder
        finally:
            set_spawning_popen(None)
        self.fds = passing.fds
        _, self.rows = self.encoder.data()
        self.size, self.storages, self.table = self.encoder.layout()
        sink.digest.update(b" %d %d " % (len(self.rows), len(self.table)) + self.rows + self.table)
        self._mark = sink.digest.digest(), [_identity(fd) for fd in self.fds]
        self.memory: _shipping.Memory | None = None

    def copy(self) -> None:
        """Copies the memory of its tensors and buffers: for the zygote, and for comparing later."""
        if self.size:
            self.memory = _shipping.memory_of(self.encoder)

    def let_go(self) -> None:
        """Lets go what was pickled, but for that copy."""
        self.encoder.clear()
        self.rows = self.table = b""

    def has_the_same(self, other: Packed) -> bool:
        """True where what was kept here is what the other has now."""
        if self._mark != other._mark:
            return False
        return self.memory is None or self.memory.holds(other.table, other.encoder)


def _identity(fd: int) -> Any:
    """The same for two descriptors of the same shared memory, pipe or socket."""
    facts = os.fstat(fd)
    # Descriptors of eventfd and its kin all have the same inode.
    return (facts.st_dev, facts.st_ino) if stat.S_IFMT(facts.st_mode) else object()
