"""`ullage.context`: a multiprocessing context whose queues hand tensors over in one shared arena.

    DataLoader(dataset, num_workers=4, multiprocessing_context=ullage.context("forkserver"))

Queues and events need no named semaphore and hold no lock that a dying process could keep. Read
torch/utils/data/dataloader.py and worker.py beside this: it says which of their methods are called.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import multiprocessing
import os
import queue
import sys
import time
import warnings
import weakref
from multiprocessing import forkserver, util
from multiprocessing.context import (
    BaseContext,
    ForkContext,
    ForkProcess,
    ForkServerContext,
    ForkServerProcess,
    SpawnContext,
    SpawnProcess,
    assert_spawning,
    get_spawning_popen,
)
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import DupFd
from typing import Any

from ullage import _arena, _native, _pickling, _shipping, _starting, _trainer
from ullage._arena import Handle, arena, handle
from ullage._died import WorkerDied
from ullage._errors import Error

# A worker that has just closed its end is given this long to be seen as ended.
_ENDING = 0.1

# One longer in each forked child. The hook is a function of C: in one of Python's a signal could raise, and be lost.
_forks: list[None] = []
os.register_at_fork(after_in_child=functools.partial(_forks.append, None))
_made: dict[int, int] = {}  # queues made by a process and still there


def _rebuild_queue(handle: Handle, passed: Any, number: int) -> Queue:
    fd = passed.detach()
    try:
        return Queue(_of=(handle.arena, _native.Queue.attach(handle.arena, fd, number)))
    finally:
        os.close(fd)


def _rebuild_event(handle: Handle, offset: int) -> Event:
    return Event(_of=(handle.arena, _native.Flag.attach(handle.arena, offset)))


class Queue:
    """A queue between processes, without a size: `put` never waits for room, and serialises at once.

    What is put is copied: later changes by the sender are not seen. Tensors that torch's collate made in a loader's
    worker are handed over without a copy. `get` raises `ullage.errors.WorkerDied` where a process that writes to
    this queue was killed or failed.
    """

    def __init__(self, maxsize: int = 0, *, _of: tuple[Any, Any] | None = None) -> None:
        if maxsize > 0:
            raise Error(
                "ullage's queues have no maxsize: put never waits. Bound what is put, or use multiprocessing.Queue"
            )
        self._arena: _native.Arena = arena() if _of is None else _of[0]
        self._queue: _native.Queue = _native.Queue(self._arena) if _of is None else _of[1]
        self._maker = os.getpid() if _of is None else -1
        self._processes: list[Any] = []
        self._sentinels: list[int] = []  # theirs
        self._kept = [True]  # shared with the finalizer
        self._exit: Any = None
        self._forks = len(_forks)  # all three are of the process that had come of so many forks
        self._closer = weakref.finalize(self, _close, self._arena, self._queue, self._maker)
        self._closer.atexit = False
        if self._maker != -1:
            _made[self._maker] = _made.get(self._maker, 0) + 1

    def __reduce__(self) -> Any:
        assert_spawning(self)
        return _rebuild_queue, (handle(self._arena), DupFd(self._queue.fileno()), self._queue.number)

    def _watch(self, process: Any) -> None:
        """`get` tells of this process's death."""
        self._forget()
        self._processes.append(process)
        self._sentinels.append(process.sentinel)

    def _forget(self) -> None:
        """In a forked child, once: its parent's processes are not its own, nor is what its parent does at exit."""
        if self._forks != len(_forks):
            self._processes, self._sentinels, self._exit = [], [], None
            self._forks = len(_forks)

    def put(self, obj: Any, block: bool = True, timeout: float | None = None) -> None:
        """Puts an object. Never waits; raises what its pickling raises."""
        pickler = None
        try:
            pickler = _pickling.dump(obj)
            self._queue.send(pickler.encoder)
        except Exception:
            # What the handler of a signal raises once it is sent is no reason to send another.
            instead = None if pickler is not None and pickler.encoder.sent else _for_the_trainer(obj)
            if instead is None:
                raise
            pickler = _pickling.dump(instead)
            self._queue.send(pickler.encoder)
        _pickling.done(pickler)
        self._send_at_exit()

    def _send_at_exit(self) -> None:
        # Forgotten by a forked child, whose end is its own; asking for the pid would be a system call a batch.
        if self._exit is None or self._forks != len(_forks):
            self._forget()
            self._exit = util.Finalize(self, _join, args=[self._queue, self._kept], exitpriority=-5)

    def put_nowait(self, obj: Any) -> None:
        """As `put`."""
        self.put(obj)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """The next object; `queue.Empty` after `timeout` seconds."""
        self._forget()
        begin = 0.0 if timeout is None else time.monotonic()
        left = timeout if block else 0.0
        try:
            while True:
                got = self._queue.receive(left, self._sentinels)
                if isinstance(got, _native.Incoming):
                    return got.load()
                if got is None:
                    if block:
                        self._arena.trim()
                    raise queue.Empty
                self._ended(self._processes[got])
                if left and timeout is not None:
                    left = max(0.0, begin + timeout - time.monotonic())
        except RuntimeError as error:
            # torch's SIGCHLD handler speaks first, wherever this thread is.
            for process in list(self._processes):
                if not isinstance(error, _native.ArenaError) and process.exitcode not in (None, 0):
                    self._ended(process, error)
            raise

    def get_nowait(self) -> Any:
        """As `get(block=False)`."""
        return self.get(False)

    def _ended(self, process: Any, error: BaseException | None = None) -> None:
        at = self._processes.index(process)
        if process._closed:  # by the program: its sentinel is another's descriptor by now
            del self._processes[at], self._sentinels[at]
            return
        deadline = time.monotonic() + _ENDING
        # Looked at before it is reaped: only until then does torch's SIGCHLD handler find it, and tell how it ended.
        with contextlib.suppress(ChildProcessError):
            while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                if time.monotonic() > deadline:
                    break
                time.sleep(0.001)
        while process.exitcode is None and time.monotonic() < deadline:
            process.join(0.005)
        if process.exitcode is None:
            raise queue.Empty
        del self._processes[at], self._sentinels[at]
        if process.exitcode != 0:
            raise WorkerDied(process.pid, process.exitcode) from error

    def empty(self) -> bool:
        """True where nothing can be got at this moment."""
        empty: bool = self._queue.empty()
        return empty

    def full(self) -> bool:
        """False: it has no size."""
        return False

    def qsize(self) -> int:
        """Not known."""
        raise NotImplementedError("an ullage queue does not count its messages")

    def close(self) -> None:
        """This process puts no more."""

    def join_thread(self) -> None:
        """Waits until all that was put can be got."""
        _join(self._queue, self._kept)

    def cancel_join_thread(self) -> None:
        """What was put and could not be got yet may be lost at exit."""
        self._kept[0] = False


def _close(arena: _native.Arena, native: _native.Queue, maker: int) -> None:
    # Only who made it may say that nobody will get from it.
    if maker != os.getpid():
        return
    native.close()
    _made[maker] -= 1
    if _made[maker] == 0:
        arena.trim()  # no loader runs any more


def _over_soft_cap(cap: int) -> None:
    """Called once, where the arena has become larger than its soft cap: says who holds its bytes."""
    report = arena().report()
    text = [f"ullage's arena has grown to {_bytes(report['committed'])} (told from {_bytes(cap)} on)"]
    for pid, blocks, nbytes, age in report["holdings"][:3]:
        who = f"this process ({pid})" if pid == os.getpid() else f"process {pid}" if pid else "what is on its way"
        text.append(f"{who} holds {_bytes(nbytes)} in {blocks:,} blocks, the oldest for {age} s")
    text.append(
        "batches that are kept, in a list for instance, keep their bytes: keep copies, or less of them. "
        "ULLAGE_ARENA_SOFT_CAP=BYTES sets from when on this is told"
    )
    warnings.warn("; ".join(text), RuntimeWarning, stacklevel=2)


def _bytes(number: int) -> str:
    size, unit = float(number), "B"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:.3g} {unit}"


def _join(native: Any, kept: list[bool]) -> None:
    """At the end of a process: what it put must be in the pipe, unless it said that it may be lost."""
    if kept[0]:
        native.flush(1e9)


class Event:
    """As `multiprocessing.Event`, without semaphores and descriptors."""

    def __init__(self, *, _of: tuple[Any, Any] | None = None) -> None:
        self._arena: _native.Arena = arena() if _of is None else _of[0]
        self._flag: _native.Flag = _native.Flag(self._arena) if _of is None else _of[1]

    def __reduce__(self) -> Any:
        assert_spawning(self)
        return _rebuild_event, (handle(self._arena), self._flag.pass_on())

    def is_set(self) -> bool:
        """True where it is set."""
        is_set: bool = self._flag.is_set()
        return is_set

    def set(self) -> None:
        """Sets it, and wakes all who wait."""
        self._flag.set()

    def clear(self) -> None:
        """Clears it."""
        self._flag.clear()

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until it is set; False after `timeout` seconds."""
        is_set: bool = self._flag.wait(timeout)
        return is_set


def _for_the_trainer(obj: Any) -> Any:
    """What a loader's worker sends in place of a batch that cannot be sent; None for any other message."""
    torch = sys.modules.get("ullage.torch")
    number = None if torch is None else torch.worker_number()
    if number is None or not (isinstance(obj, tuple) and len(obj) == 2):
        return None
    from torch._utils import ExceptionWrapper

    return obj[0], ExceptionWrapper(where=f"in DataLoader worker process {number}, sending a batch")


class _Watched:
    """What ullage's processes do beside multiprocessing's: they end with their trainer, and their queues know them."""

    _ullage_trainer: tuple[int, int] | None = None

    def start(self) -> None:
        _pickling.load_torch()
        self._ullage_trainer = _trainer.this()
        # Its arguments are gone after the start.
        arguments = (*self._args, *self._kwargs.values())  # type: ignore[attr-defined]
        super().start()  # type: ignore[misc]
        for argument in arguments:
            if isinstance(argument, Queue) and argument._maker == os.getpid():
                argument._watch(self)

    def _begin(self) -> None:
        """In the new process, once: it ends with its trainer, and collects what it makes itself."""
        trainer, self._ullage_trainer = self._ullage_trainer, None
        if trainer is None:
            return
        _trainer.end_with(*trainer)
        # A full collection writes into every object it visits: each worker would copy what it inherited.
        gc.freeze()

    def _bootstrap(self, parent_sentinel: Any = None) -> int:
        self._begin()
        code: int = super()._bootstrap(parent_sentinel)  # type: ignore[misc]
        return code

    def run(self) -> None:
        _enter_worker(self)
        super().run()  # type: ignore[misc]

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state["_args"], state["_kwargs"] = (), {}
        state["_target"] = None
        ship = getattr(get_spawning_popen(), "ship", _shipping.ship)  # a zygote has most of it already
        shipped = ship((self._target, self._args, self._kwargs))  # type: ignore[attr-defined]
        # Kept here as well, so that the next worker of the same loader finds the same bytes.
        self._ullage_memory = shipped.memory
        _arena.sent(0 if shipped.memory is None else shipped.memory.size, shipped.passed_by)
        state["_ullage_shipped"] = shipped
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        shipped = state.pop("_ullage_shipped")
        self.__dict__.update(state)
        # Before the arguments, whose modules may take long to import.
        self._begin()
        self._target, self._args, self._kwargs = shipped.unpack()


def _enter_worker(process: Any) -> None:
    """In a process of ours: what it collates goes into the arena that its queues are of."""
    queues = [one for one in (*process._args, *process._kwargs.values()) if isinstance(one, Queue)]
    if queues and "torch" in sys.modules:
        _pickling.load_torch()
        sys.modules["ullage.torch"].collate_in(queues[0]._arena)


class _ForkProcess(_Watched, ForkProcess):
    pass


class _SpawnProcess(_Watched, SpawnProcess):
    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        return _starting.SpawnPopen(process_obj)


class _ForkServerProcess(_Watched, ForkServerProcess):
    def start(self) -> None:
        _preload_torch()
        super().start()

    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        return _starting.ForkServerPopen(process_obj)


def _preload_torch() -> None:
    """The fork server imports torch once, and not each of its children; where the program has said nothing else."""
    server: Any = forkserver._forkserver  # type: ignore[attr-defined]
    if "torch" in sys.modules and server._forkserver_pid is None and server._preload_modules == ["__main__"]:
        forkserver.set_forkserver_preload(["__main__", "ullage.torch.early"])


class _ZygoteProcess(_Watched, BaseProcess):
    _start_method = None  # of its own processes: the trainer's default
    _ullage_method = "zygote"

    _ullage_otherwise: str | None = None  # how it is started where a zygote must not fork

    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        from ullage._zygote import trainer

        return trainer.start(process_obj, process_obj._ullage_otherwise, popen_of)


# By its class a process is named where the program gives it no name.
for _kind in (_ForkProcess, _SpawnProcess, _ForkServerProcess):
    _kind.__name__ = _kind.__name__[1:]
_ZygoteProcess.__name__ = "Process"


def popen_of(method: str) -> Any:
    """What starts a process of ours by a method of multiprocessing's."""
    if method == "forkserver":
        _preload_torch()
    kind: Any = {"fork": _ForkProcess, "spawn": _SpawnProcess, "forkserver": _ForkServerProcess}[method]
    return kind._Popen


class _Queues:
    """The parts of a context that are ullage's."""

    _name: str

    def Queue(self, maxsize: int = 0) -> Queue:
        return Queue(maxsize)

    def Event(self) -> Event:
        return Event()

    def get_start_method(self, allow_none: bool = False) -> str:
        return self._name

    def __reduce__(self) -> Any:
        return context, (self._name,)

    def __repr__(self) -> str:
        return f"ullage.context({self._name!r})"


class _Fork(_Queues, ForkContext):  # type: ignore[misc]
    Process = _ForkProcess


class _Spawn(_Queues, SpawnContext):  # type: ignore[misc]
    Process = _SpawnProcess


class _ForkServer(_Queues, ForkServerContext):  # type: ignore[misc]
    Process = _ForkServerProcess


class _Zygote(_Queues, BaseContext):  # type: ignore[misc]
    """`otherwise`: the start method where a zygote must not fork; by default the program's."""

    _name = "zygote"

    def __init__(self, otherwise: str | None = None) -> None:
        self._otherwise = otherwise

    def Process(self, *args: Any, **kwargs: Any) -> _ZygoteProcess:
        made = _ZygoteProcess(*args, **kwargs)
        made._ullage_otherwise = self._otherwise
        return made

    def __reduce__(self) -> Any:
        return context, (self._name, self._otherwise)


def called(context: Any, kind: str) -> Any:
    """This context of ours, with processes that are named as those of class `kind` where the program gives no name."""
    if context.Process.__name__ == kind:
        return context
    kept = context.__dict__.setdefault("_ullage_called", {})
    if kind not in kept:
        made = kept[kind] = object.__new__(type(context))
        made.__dict__.update(context.__dict__, Process=functools.partial(_process_called, context.Process, kind))
    return kept[kind]


def _process_called(
    make: Any, kind: str, group: Any = None, target: Any = None, name: Any = None, *args: Any, **kwargs: Any
) -> Any:
    process = make(group, target, name, *args, **kwargs)
    if not name:
        process._name = f"{kind}-{process._name.partition('-')[2]}"
    return process


_CONTEXTS: dict[str, BaseContext] = {
    "fork": _Fork(),
    "spawn": _Spawn(),
    "forkserver": _ForkServer(),
    "zygote": _Zygote(),
}


def context(method: str | None = None, otherwise: str | None = None) -> BaseContext:
    """A multiprocessing context for this start method: "fork", "spawn", "forkserver", or ullage's own "zygote"; by
    default the program's.

    Give it to a DataLoader as `multiprocessing_context`. It can be pickled and copied. With "zygote" one new process
    takes over the dataset, once, and all workers are forked from it. It begins to import torch now, where this program
    has it. Where no process can be forked from it, for its threads, they are started by `otherwise`, by default the
    program's own method. With `ULLAGE_DISABLE=1` the context is multiprocessing's own (`otherwise` for "zygote").
    """
    if method is None:
        method = multiprocessing.get_start_method()
    if os.environ.get("ULLAGE_DISABLE") == "1" and method in _CONTEXTS:
        return multiprocessing.get_context(otherwise if method == "zygote" else method)
    try:
        found = _CONTEXTS[method]
    except KeyError:
        raise Error(f"there is no start method {method!r}: it must be one of {', '.join(_CONTEXTS)}") from None
    if method == "zygote":
        from ullage._zygote import trainer

        trainer.prepare()
        if otherwise is not None:
            return _Zygote(otherwise)
    return found
