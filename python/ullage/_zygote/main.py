"""Inside the root and its zygotes: one interpreter imports, a fork of it takes over each dataset, and forks workers.

The root becomes what spawn would have made of it, once; a zygote is a fork of the root, a worker one of a zygote. The
surprise: no second thread may ever run here. A fork copies the locks that a thread holds, but not the thread.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import io
import os
import pickle
import select
import signal
import socket
import struct
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from multiprocessing import process, resource_tracker, spawn, util
from typing import Any

from ullage import _native, _trainer
from ullage._zygote import messages
from ullage._zygote.messages import receive, send
from ullage._zygote.unpickling import Stream, unpickle

# While these are 1, importing numpy, torch and their kin starts no thread.
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"
)
_PR_SET_PDEATHSIG = 1
# By which a zygote is told from its workers, which run the same command line (crates/observe/sampler/src/roles.rs).
_COMM = "ullage-zygote"
# By their comm: threads of allocators that hold no lock over a fork, and begin anew in the child (pthread_atfork).
# jemalloc's, which `import pyarrow`, and pandas by that, starts: background_thread_prefork0 in its source.
# And the agent's, beside such a one: it ends before each fork (python/agent/src/waker.rs).
_FORK_SAFE = frozenset({"jemalloc_bg_thd", "ullage-waker"})


def main(control_fd: int, tracker_fd: int, trainer_pid: int, modules: Sequence[str]) -> None:
    """Runs a root."""
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
    _die_with_thread(True)
    trainer = _pidfd_of_parent(trainer_pid)
    begun = _trainer.start_of(trainer_pid)
    util._close_stdin()  # type: ignore[attr-defined]
    resource_tracker._resource_tracker._fd = tracker_fd  # type: ignore[attr-defined]
    control = socket.socket(fileno=control_fd)
    for fd in (control_fd, tracker_fd):
        os.set_inheritable(fd, False)
    os.environ.update(_ONE_THREAD)
    for name in modules:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    _die_with_thread(False)
    _wait(control, trainer)
    with _telling_failure(control):
        text, _ = receive(control)
        with _inheriting(), io.BytesIO(text) as data:
            _die_with_thread(pickle.load(data))
            _become_one_of_the_program(data)
    _die_with_thread(False)
    gc.freeze()  # a collection in a zygote would copy what it has from here
    with contextlib.suppress(OSError):
        send(control, pickle.dumps(("ready", None)))
    ends = functools.partial(_trainer.end_with, trainer_pid, begun)
    become = functools.partial(_become_zygote, root=os.getpid(), trainer=trainer, ends=ends, interrupt=interrupt)
    _serve(control, trainer, become)
    os._exit(0)


def _become_zygote(channel: socket.socket, root: int, trainer: int, ends: Callable[[], None], interrupt: Any) -> int:
    """In a fork of the root: it takes over what its workers share. Its channel stays open as long as it lives."""
    _die_with_thread(True)  # the root ends with the trainer, for which this process does not look meanwhile
    if os.getppid() != root:
        return 1
    comm = _name_of("self")
    _call_itself(_COMM)
    try:
        text, (control_fd, stream_fd) = receive(channel)
    except EOFError:
        return 1  # the trainer has given up
    control, stream = socket.socket(fileno=control_fd), Stream(stream_fd)
    collects = gc.isenabled()
    gc.disable()
    began = time.monotonic()
    with _telling_failure(control):
        with _inheriting(), io.BytesIO(text) as data:
            _become_one_of_the_program(data)
            messages.shared.update(unpickle(control, stream))
    took_over = time.monotonic()
    facts = {"took_over_s": took_over - began, "frozen": _freeze(), "froze_s": time.monotonic() - took_over}
    _leave_the_watch_to_us()
    _die_with_thread(False)
    with contextlib.suppress(OSError):
        send(control, pickle.dumps(("ready", facts)))

    def become(own: socket.socket) -> int:
        channel.close()
        _call_itself(comm)
        return _become_worker(own, trainer, ends, interrupt, collects)

    _serve(control, trainer, become)
    return 0


@contextlib.contextmanager
def _telling_failure(control: socket.socket) -> Any:
    """What fails in here is told to the trainer, and is the end."""
    try:
        yield
    except BaseException as error:
        words = "".join(traceback.format_exception_only(type(error), error)).strip()
        with contextlib.suppress(OSError):
            send(control, pickle.dumps(("failed", (words, traceback.format_exc()))))
        os._exit(1)


def _die_with_thread(does: bool) -> None:
    # Only while the thread that started us waits: the signal comes where that thread ends, not the process.
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL) if does else 0, 0, 0, 0)


def _pidfd_of_parent(pid: int) -> int:
    with contextlib.suppress(OSError):
        fd = _native.pidfd_open(pid)
        if os.getppid() == pid:
            return fd
    os._exit(1)  # it ended, and its number may be another's by now


def _wait(control: socket.socket, trainer: int) -> None:
    """Until the trainer says something; or ends, and this process with it."""
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(trainer, select.POLLIN)
    if trainer in [fd for fd, _ in poll.poll()]:
        os._exit(0)


@contextlib.contextmanager
def _inheriting() -> Any:
    """As multiprocessing's spawn: what the main module must not do while it is imported again, raises."""
    current: Any = process.current_process()
    current._inheriting = True
    try:
        yield
    finally:
        del current._inheriting


def _become_one_of_the_program(data: io.BytesIO, variables: dict[str, str] = _ONE_THREAD) -> None:
    """What spawn does, with the environment that the trainer has now, and these variables."""
    environment = pickle.load(data)
    os.environ.clear()
    os.environ.update({**environment, **variables})
    spawn.prepare(pickle.load(data))  # which imports the main module where that is not done yet


def _freeze() -> str:
    """Reading what is shared must not write to it: neither reference counts, where that can be, nor the collector."""
    try:
        freeze = importlib.import_module("ullage._freeze").freeze
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of tensors, whose memory is shared anyway
            freeze(messages.shared)
        result = "reference counts"
    except ImportError:
        result = "collector only"
    except Exception as error:
        result = f"collector only: {error}"
    gc.freeze()
    return result


def _leave_the_watch_to_us() -> None:
    """torch's workers end where their parent does, which is the zygote. Ours end with the trainer, and only with it."""
    module = sys.modules.get("torch.utils.data._utils.worker")
    if module is None:
        return
    zygote, original = os.getpid(), module.ManagerWatchdog.is_alive

    def is_alive(self: Any) -> bool:
        return self.manager_pid == zygote or bool(original(self))

    module.ManagerWatchdog.is_alive = is_alive


def _serve(control: socket.socket, trainer: int, become: Callable[[socket.socket], int]) -> None:
    """Forks and reaps until nobody can ask any more and the last worker has ended; or the trainer has."""
    workers: dict[int, tuple[int, socket.socket]] = {}  # by pidfd
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(trainer, select.POLLIN)
    asking = control.fileno()
    while asking != -1 or workers:
        for fd, _ in poll.poll():
            if fd == trainer:
                os._exit(0)
            elif fd != asking:
                poll.unregister(fd)
                _reap(fd, *workers.pop(fd))
                continue
            try:
                _, (channel_fd,) = receive(control)
            except (EOFError, ConnectionError):
                poll.unregister(control)
                control.close()
                asking = -1
                continue
            channel = socket.socket(fileno=channel_fd)
            forked = _fork(channel)
            if forked is None:
                channel.close()
            elif forked[0] == 0:
                for other, (_, theirs) in workers.items():
                    os.close(other)
                    theirs.close()
                control.close()
                code = 1
                try:
                    code = become(channel)
                finally:
                    os._exit(code)
            else:
                workers[forked[1]] = forked[0], channel
                poll.register(forked[1], select.POLLIN)


def _reap(pidfd: int, pid: int, channel: socket.socket) -> None:
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with contextlib.suppress(OSError):
        channel.sendall(struct.pack("q", code))  # for multiprocessing.forkserver.read_signed
    channel.close()
    os.close(pidfd)


def _fork(channel: socket.socket) -> tuple[int, int] | None:
    """pid and pidfd of a new worker, after telling the trainer; pid 0 in the worker; None where none was made."""
    why = _why_not()
    answer: tuple[str, Any] = ("refused", why)
    forked = None
    if why is None:
        util._flush_std_streams()  # type: ignore[attr-defined]
        pid = -1
        try:
            pid = os.fork()
            if pid == 0:
                return 0, -1
            forked = pid, _native.pidfd_open(pid)
            answer = ("forked", pid)
        except OSError as error:
            answer = ("failed", str(error))
            if pid != -1:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
    with contextlib.suppress(OSError):
        send(channel, pickle.dumps(answer))
    return forked


def _why_not() -> str | None:
    """Why a fork of this process would not be safe; None where it is."""
    for pause in (0.0, 0.001, 0.01, 0.05):
        time.sleep(pause)  # a thread that was joined may still be listed
        names = [_name_of(thread) for thread in os.listdir("/proc/self/task") if thread != str(os.getpid())]
        others = [name for name in names if name not in _FORK_SAFE]
        if not others:
            break
    else:
        listed = ", ".join(sorted(set(others)))
        return f"{len(others) + 1} threads run in it, which imports or the dataset started ({listed})"
    return "imports or the dataset initialised CUDA in it" if _has_cuda() else None


def _has_cuda() -> bool:
    torch_cuda = sys.modules.get("torch.cuda")
    if torch_cuda is not None and torch_cuda.is_initialized():
        return True
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the listing's own
            if os.readlink(f"/proc/self/fd/{fd}") == "/dev/nvidia-uvm":
                return True  # opened by cuInit, for other libraries too
    return False


def _name_of(thread: str) -> str:
    path = "/proc/self/comm" if thread == "self" else f"/proc/self/task/{thread}/comm"
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return "ended meanwhile"


def _call_itself(comm: str) -> None:
    with contextlib.suppress(OSError), open("/proc/self/comm", "w") as file:
        file.write(comm)


def _become_worker(
    channel: socket.socket, trainer: int, ends: Callable[[], None], interrupt: Any, collects: bool
) -> int:
    """In a new worker. What it is to do comes through its channel, which stays open as long as it lives."""
    ends()
    signal.signal(signal.SIGINT, interrupt)
    if collects:
        gc.enable()
    random: Any = sys.modules.get("numpy.random")
    if random is not None:
        random.seed()  # as in a new interpreter
    try:
        text, fds = receive(channel)
    except EOFError:
        return 1  # the trainer has given up
    messages.descriptors(fds.__getitem__)
    try:
        with _inheriting(), io.BytesIO(text) as data:
            _become_one_of_the_program(data, {})
            worker = pickle.load(data)
        code: int = worker._bootstrap(parent_sentinel=trainer)
        return code
    except Exception as error:
        sys.excepthook(type(error), error, error.__traceback__)
        sys.stderr.flush()
        return 1
