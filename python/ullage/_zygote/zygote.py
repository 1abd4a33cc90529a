"""One zygote as the trainer has it: a process, a socket to it, and what it was given to share."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import pickle
import signal
import socket
import sys
import threading
import weakref
from multiprocessing import reduction, resource_tracker, spawn, util
from multiprocessing.context import set_spawning_popen
from typing import Any

from ullage._died import how_it_ended
from ullage._zygote.messages import receive, send
from ullage._zygote.packing import Packed, Parts
from ullage.errors import Error

_COMMAND = "import sys; sys.path[:] = {path!r}; from ullage._zygote.main import main; main({words})"
_F_SETPIPE_SZ = 1031  # in fcntl from Python 3.10 on
_GONE = (EOFError, BrokenPipeError, ConnectionResetError)


class Refused(Exception):
    """The zygote must not fork. Says why."""


class Ended(Error):
    """The zygote is not there any more."""


class Zygote:
    """A new interpreter, with nothing to share yet."""

    def __init__(self) -> None:
        self.packed: Packed | None = None
        self.facts: dict[str, Any] = {}
        self._starter = threading.get_ident()
        self._code: int | None = None
        self._owners: dict[int, weakref.ref[Any]] = {}
        tracker: int = resource_tracker.getfd()  # type: ignore[assignment]
        path = spawn.get_preparation_data("zygote")["sys_path"]
        modules = ["ullage.torch.early"] if "torch" in sys.modules else []
        read = self._pipe = -1
        self.socket, theirs = socket.socketpair()
        try:
            read, self._pipe = os.pipe()
            with contextlib.suppress(OSError):
                fcntl.fcntl(self._pipe, _F_SETPIPE_SZ, 1 << 20)  # so that both can work at once
            words = f"{theirs.fileno()}, {read}, {tracker}, {os.getpid()}, {modules!r}"
            command = [spawn.get_executable(), *util._args_from_interpreter_flags(), "-c"]  # type: ignore[attr-defined]
            command = [os.fsdecode(word) for word in (*command, _COMMAND.format(path=path, words=words))]
            passed = [theirs.fileno(), read, tracker]
            self.pid: int = util.spawnv_passfds(os.fsencode(command[0]), command, passed)
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
                self._tell_what_spawn_tells()
                try:
                    self.packed = Packed(parts, self._pipe)
                finally:
                    self._close_pipe()
                self.packed.copy()
                self._send_the_rest(self.packed)
        except BaseException:
            self.kill()
            raise
        try:
            word, said = pickle.loads(receive(self.socket)[0])
        except _GONE:
            how = how_it_ended(self.kill())
            raise Ended(
                f"the zygote (process {self.pid}) {how} while it took over what its workers share, the dataset among "
                "it; run the job as `ullage run -- ...` to see which limit it met"
            ) from None
        except BaseException:
            self.kill()
            raise
        if word == "failed" or self.packed is None:
            self.kill()
            what, where = said
            raise Error(
                f"the zygote (process {self.pid}) could not take over what its workers share, the dataset among it: "
                f"{what}. In the zygote:\n\n{where}"
            )
        self.facts = said
        return self.packed

    def _tell_what_spawn_tells(self) -> None:
        data = io.BytesIO()
        set_spawning_popen(self)  # type: ignore[arg-type]
        try:
            reduction.dump(self._starter == threading.get_ident(), data)
            # Each worker hears the same again, and logs for itself.
            reduction.dump({**spawn.get_preparation_data("zygote"), "log_to_stderr": False}, data)
        finally:
            set_spawning_popen(None)
        send(self.socket, data.getvalue())

    def _send_the_rest(self, packed: Packed) -> None:
        fds = [] if packed.memory is None else [packed.memory.fd]
        text = pickle.dumps((packed.size, packed.rows, packed.table, packed.storages))
        send(self.socket, text, fds + packed.fds)

    def fork(self) -> tuple[int, socket.socket]:
        """pid of a new worker, and a socket: to the worker, which waits for what it is to do, and from the zygote,
        which says how it ended."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                send(self.socket, b"", [theirs.fileno()])
            word, said = pickle.loads(receive(ours)[0])
            if word == "forked":
                return said, ours
        except _GONE:
            ours.close()  # a worker that was forked nevertheless ends by that
            how = how_it_ended(self.kill())
            raise Ended(f"the zygote (process {self.pid}) {how} while it started a worker") from None
        except BaseException:
            ours.close()
            raise
        ours.close()
        raise Refused(said) if word == "refused" else Error(f"the zygote could not start a worker: {said}")

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
        return self.socket.fileno() == -1

    def close(self) -> None:
        """It makes no more workers, and ends with the last of those that it has."""
        self.packed = None  # a copy of its memory is kept there
        self.socket.close()
        self._close_pipe()

    def _close_pipe(self) -> None:
        pipe, self._pipe = self._pipe, -1
        if pipe != -1:
            os.close(pipe)

    def kill(self) -> int:
        """Ends it at once, where it has not ended yet; how it ended."""
        self.close()
        if self._code is None:
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
