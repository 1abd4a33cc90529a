"""The root and one zygote as the trainer has them: a process, a socket to it, and what it was given to share."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import pickle
import select
import signal
import socket
import sys
import threading
import weakref
from multiprocessing import forkserver, reduction, resource_tracker, spawn, util
from multiprocessing.context import set_spawning_popen
from typing import Any

from ullage._died import how_it_ended
from ullage._errors import Error
from ullage._zygote.messages import receive, send
from ullage._zygote.packing import Packed, Parts

_COMMAND = "import sys; sys.path[:] = {path!r}; from ullage._zygote.main import main; main({words})"
_F_SETPIPE_SZ = 1031  # in fcntl from Python 3.10 on
_GONE = (EOFError, BrokenPipeError, ConnectionResetError)


class Refused(Exception):
    """The zygote must not fork. Says why."""


class Ended(Error):
    """The zygote is not there any more."""


class _Forks:
    """A process that forks others, one for each channel that it is sent."""

    name: str
    pid: int
    socket: Any

    def fork(self) -> tuple[int, socket.socket]:
        """pid of a new process, and its channel: to the process, which waits for what it is to do, and from the one
        that forked it, which says how it ended."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                send(self.socket, b"", [theirs.fileno()])
            word, said = pickle.loads(receive(ours)[0])
            if word == "forked":
                return said, ours
        except _GONE:
            ours.close()  # one that was forked nevertheless ends by that
            how = how_it_ended(self.kill())
            raise Ended(f"the {self.name} (process {self.pid}) {how} while it started a process") from None
        except BaseException:
            ours.close()
            raise
        ours.close()
        raise Refused(said) if word == "refused" else Error(f"the {self.name} could not start a process: {said}")

    def told(self, doing: str) -> Any:
        """What it says when it is ready; where it failed to do its work, it is ended, and that raises."""
        try:
            word, said = pickle.loads(receive(self.socket)[0])
        except _GONE:
            how = how_it_ended(self.kill())
            raise Ended(
                f"the {self.name} (process {self.pid}) {how} while it {doing}; run the job as `ullage run -- ...` to "
                "see which limit it met"
            ) from None
        except BaseException:
            self.kill()
            raise
        if word == "failed":
            self.kill()
            what, where = said
            raise Error(
                f"the {self.name} (process {self.pid}) failed while it {doing}: {what}. In that process:\n\n{where}"
            )
        return said

    def close(self) -> None:
        raise NotImplementedError

    def kill(self) -> int:
        raise NotImplementedError


class Root(_Forks):
    """A new interpreter, which imports what the program has, once: all zygotes are forked from it."""

    name = "zygotes' root"

    def __init__(self) -> None:
        self.ready = False
        self._starter = threading.get_ident()
        self._code: int | None = None
        tracker: int = resource_tracker.getfd()  # type: ignore[assignment]
        path = spawn.get_preparation_data("zygote")["sys_path"]
        modules = ["ullage.torch.early"] if "torch" in sys.modules else []
        self.socket, theirs = socket.socketpair()
        try:
            words = f"{theirs.fileno()}, {tracker}, {os.getpid()}, {modules!r}"
            command = [spawn.get_executable(), *util._args_from_interpreter_flags(), "-c"]  # type: ignore[attr-defined]
            command = [os.fsdecode(word) for word in (*command, _COMMAND.format(path=path, words=words))]
            self.pid = util.spawnv_passfds(os.fsencode(command[0]), command, [theirs.fileno(), tracker])
        except BaseException:
            self.close()
            raise
        finally:
            theirs.close()

    def prepare(self) -> None:
        """It imports the main module; waits for that."""
        if self.ready:
            return
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # `told` says why
            send(self.socket, _what_spawn_tells(self, self._starter == threading.get_ident()))
        self.told("imported the main module")
        self.ready = True

    def close(self) -> None:
        """It makes no more zygotes, and ends with the last of those that it has."""
        self.socket.close()

    def kill(self) -> int:
        """Ends it at once, where it has not ended yet; how it ended."""
        self.close()
        if self.ended() is None:
            with contextlib.suppress(OSError):
                os.kill(self.pid, signal.SIGKILL)
        code = self.ended(0)
        return 255 if code is None else code

    def ended(self, flag: int = os.WNOHANG) -> int | None:
        """Its exit code where it has ended; 255 where somebody else has asked for it before."""
        if self._code is None:
            try:
                pid, status = os.waitpid(self.pid, flag)
            except ChildProcessError:
                self._code = 255
            else:
                self._code = None if pid == 0 else os.waitstatus_to_exitcode(status)
        return self._code


class Zygote(_Forks):
    """A fork of the root, with nothing to share yet."""

    name = "zygote"

    def __init__(self, root: Root) -> None:
        self.packed: Packed | None = None
        self.facts: dict[str, Any] = {}
        self._code: int | None = None
        self._owners: dict[int, weakref.ref[Any]] = {}
        self.pid, self._channel = root.fork()
        read = self._pipe = -1
        self.socket, theirs = socket.socketpair()
        try:
            read, self._pipe = os.pipe()
            with contextlib.suppress(OSError):
                fcntl.fcntl(self._pipe, _F_SETPIPE_SZ, 1 << 20)  # so that both can work at once
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # `fill` says how it ended
                send(self._channel, _what_spawn_tells(self), [theirs.fileno(), read])
        except BaseException:
            self.close()
            raise
        finally:
            theirs.close()
            if read != -1:
                os.close(read)

    def fill(self, parts: Parts) -> Packed:
        """Gives it what to share, and waits until it has it."""
        try:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it says why, or its end does
                try:
                    self.packed = Packed(parts, self._pipe)
                finally:
                    self._close_pipe()
                self.packed.copy()
                self._send_the_rest(self.packed)
        except BaseException:
            self.kill()
            raise
        packed = self.packed
        self.facts = self.told("took over what its workers share, the dataset among it")
        if packed is None:
            how = how_it_ended(self.kill())
            raise Ended(f"the zygote (process {self.pid}) {how} while it took over what its workers share")
        return packed

    def _send_the_rest(self, packed: Packed) -> None:
        fds = [] if packed.memory is None else [packed.memory.fd]
        text = pickle.dumps((packed.size, packed.rows, packed.table, packed.storages))
        send(self.socket, text, fds + packed.fds)

    # --- its end --------------------------------------------------------------------------------------------

    def serves(self, owner: weakref.ref[Any] | None) -> None:
        """It is kept as long as this object lives."""
        target = None if owner is None else owner()
        if target is not None:
            key = id(target)
            self._owners[key] = weakref.ref(target, lambda _: self._without(key))

    def serves_no_more(self, owner: weakref.ref[Any] | None) -> bool:
        """True where it did."""
        key = id(None if owner is None else owner())
        if key not in self._owners:
            return False
        self._without(key)
        return True

    def _without(self, key: int) -> None:
        # Called by the collector too, anywhere: it must take no lock.
        self._owners.pop(key, None)
        if not self._owners:
            self.close()

    @property
    def owned(self) -> bool:
        return bool(self._owners)

    @property
    def closed(self) -> bool:
        return bool(self.socket.fileno() == -1)

    def close(self) -> None:
        """It makes no more workers, and ends with the last of those that it has."""
        self.packed = None  # a copy of its memory is kept there
        self.socket.close()
        self._channel.close()
        self._close_pipe()

    def _close_pipe(self) -> None:
        pipe, self._pipe = self._pipe, -1
        if pipe != -1:
            os.close(pipe)

    def kill(self) -> int:
        """Ends it at once, where it has not ended yet; how it ended."""
        if not self.closed and self.ended() is None:
            with contextlib.suppress(OSError):
                os.kill(self.pid, signal.SIGKILL)
            self._hear()
        self.close()
        return 255 if self._code is None else self._code

    def ended(self) -> int | None:
        """Its exit code where it has ended; 255 where the root, which could say so, has ended before."""
        if self._code is None and not self.closed and select.select([self._channel], [], [], 0)[0]:
            self._hear()
        return self._code

    def _hear(self) -> None:
        try:
            self._code = forkserver.read_signed(self._channel.fileno())
        except (EOFError, OSError):
            self._code = 255


def _what_spawn_tells(popen: Any, *before: Any) -> bytes:
    """What makes a new process one of this program. Each worker hears the same again, and logs for itself."""
    data = io.BytesIO()
    set_spawning_popen(popen)
    try:
        for one in (*before, dict(os.environ), {**spawn.get_preparation_data("zygote"), "log_to_stderr": False}):
            reduction.dump(one, data)
    finally:
        set_spawning_popen(None)
    return data.getvalue()
