"""How a process that spawn or the fork server starts is told what it is to do.

Its pickle lies in a sealed memfd, and the pipe holds a few hundred bytes that say so. multiprocessing writes all of it
into the pipe, and waits until the new process has read it: for ever, where that one is killed meanwhile, because the
end to read from stays open here and in whatever else was forked at that moment.

The surprise: what comes first is loaded by a process that may not find ullage before `sys.path` is set. So it is made
of calls, most of them of the standard library, which run in the order in which they stand.
"""

from __future__ import annotations

import contextlib
import importlib
import mmap
import operator
import os
import pickle
from collections.abc import Callable, Iterator
from multiprocessing import forkserver, popen_forkserver, popen_spawn_posix, reduction, resource_tracker, spawn, util
from multiprocessing.context import set_spawning_popen
from typing import Any

from ullage import _native, _trainer

_NAME = "ullage-orders"


class _Call:
    """Arrives as what the function returns there."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self._call = function, arguments

    def __reduce__(self) -> Any:
        return self._call


def _prepared(preparation: dict[str, Any], trainer: tuple[int, int] | None) -> Any:
    """What multiprocessing prepares a new process with; before that, the process begins to end with its trainer: the
    main module is imported then, which may take long."""
    if trainer is None:
        return preparation
    path = _Call(setattr, _Call(importlib.import_module, "sys"), "path", preparation["sys_path"])
    return _Call(operator.getitem, (path, _Call(_trainer.end_with, *trainer), preparation), 2)


class Orders:
    """A process, pickled into a memfd that this process has open while `passed` runs."""

    def __init__(self, popen: Any, process_obj: Any, trainer: tuple[int, int] | None) -> None:
        self.fd = _native.memfd(_NAME)
        self._places: list[tuple[int, int]] = []  # size and offset of each pickle
        try:
            preparation = spawn.get_preparation_data(process_obj._name)
            set_spawning_popen(popen)
            try:
                with open(self.fd, "wb", closefd=False) as file:
                    for part in (_prepared(preparation, trainer), process_obj):
                        at = -(-file.tell() // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
                        file.seek(at)
                        reduction.dump(part, file)
                        self._places.append((file.tell() - at, at))
            finally:
                set_spawning_popen(None)
            _native.seal(self.fd)
            there = popen.DupFd(popen.duplicate_for_child(self.fd))
            self._fd = _Call(operator.methodcaller("detach"), there)
        except BaseException:
            os.close(self.fd)
            raise

    @contextlib.contextmanager
    def passed(self) -> Iterator[None]:
        """The descriptor is closed here when the new process has it."""
        try:
            yield
        finally:
            os.close(self.fd)

    def tell(self, pipe: int) -> None:
        """Says where they lie, in the pipe that multiprocessing reads. Less than any pipe holds."""
        first, second = (
            _Call(pickle.loads, _Call(mmap.mmap, self._fd, size, mmap.MAP_PRIVATE, mmap.PROT_READ, 0, at))
            for size, at in self._places
        )
        with open(pipe, "wb", closefd=False) as file:
            reduction.dump(first, file)
            reduction.dump(_Call(operator.getitem, (second, _Call(os.close, self._fd)), 0), file)


class SpawnPopen(popen_spawn_posix.Popen):
    """As multiprocessing's."""

    pid: int
    sentinel: int
    _fds: list[int]

    def _launch(self, process_obj: Any) -> None:
        tracker: int = resource_tracker.getfd()  # type: ignore[assignment]
        self._fds.append(tracker)
        orders = Orders(self, process_obj, process_obj._ullage_trainer)
        with orders.passed():
            parent_r, child_w = os.pipe()
            child_r, parent_w = os.pipe()
            self.finalizer = util.Finalize(self, util.close_fds, (parent_r, parent_w))  # type: ignore[attr-defined]
            try:
                command = spawn.get_command_line(tracker_fd=tracker, pipe_handle=child_r)
                passed = [*self._fds, child_r, child_w]
                self.pid = util.spawnv_passfds(os.fsencode(command[0]), command, passed)
                self.sentinel = parent_r
                orders.tell(parent_w)
            finally:
                os.close(child_r)
                os.close(child_w)


class ForkServerPopen(popen_forkserver.Popen):
    """As multiprocessing's."""

    pid: int
    sentinel: int
    _fds: list[int]

    def _launch(self, process_obj: Any) -> None:
        orders = Orders(self, process_obj, process_obj._ullage_trainer)
        with orders.passed():
            self.sentinel, parent_w = forkserver.connect_to_new_process(self._fds)
        self.finalizer = util.Finalize(self, util.close_fds, (parent_w, self.sentinel))  # type: ignore[attr-defined]
        with contextlib.suppress(BrokenPipeError):  # it has ended already, as its sentinel says
            orders.tell(parent_w)
        self.pid = forkserver.read_signed(self.sentinel)
