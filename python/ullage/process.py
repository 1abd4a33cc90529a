"""`ullage.Process`: a `multiprocessing.Process` that `ullage run` watches, and whose verdict it holds.

The surprise: `ullage run` can only watch what it started, so the child is always a new interpreter, as under
`spawn`, with `ullage run` between it and us. `start_method` is what multiprocessing's default is inside it (a
DataLoader there follows that), exactly as in a child of `multiprocessing.get_context(start_method)`.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping
from multiprocessing import connection, popen_spawn_posix, process, resource_tracker, spawn, util
from typing import Any

from ullage import _starting
from ullage._binary import find_binary
from ullage._errors import Error, NotInstalled, Unsupported

_ARGUMENTS = ("_target", "_args", "_kwargs")
_METHODS = ("spawn", "forkserver")
_ULLAGE_FAILED = 125
_STATUS_LOST = 255  # as multiprocessing, where a fork server was killed
# The child says its pid, then does what multiprocessing's spawn does.
_CHILD = (
    "import os; os.write(%d, b'%%d\\n' %% os.getpid()); os.close(%d); "
    "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=%d, pipe_handle=%d)"
)


class Process(process.BaseProcess):
    """A `multiprocessing.Process`, watched by `ullage run`; after its end, `verdict` says why it ended so.

    `memory_max` (bytes, or text such as "16GiB") is a budget for it and all its descendants. `record` is the
    directory of the recording; by default a new one under `$ULLAGE_HOME`. Where ullage is missing or switched
    off (`ULLAGE_DISABLE=1`), or fails to start, the process runs unwatched and `verdict` is None.
    """

    def __init__(
        self,
        group: None = None,
        target: Callable[..., object] | None = None,
        name: str | None = None,
        args: Iterable[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        daemon: bool | None = None,
        start_method: str = "forkserver",
        memory_max: int | str | None = None,
        record: str | os.PathLike[str] | None = None,
    ) -> None:
        if start_method == "fork":
            raise Unsupported(
                "ullage.Process cannot fork: ullage watches only what it starts. Use start_method='spawn' or "
                "'forkserver', or start the whole program with `ullage run -- python ...` and keep "
                "multiprocessing.Process"
            )
        if start_method not in _METHODS:
            raise Error(f"start_method is {start_method!r}: it must be one of {', '.join(_METHODS)}")
        super().__init__(group, target, name, tuple(args), dict(kwargs or {}), daemon=daemon)
        self._start_method = start_method  # BaseProcess._bootstrap makes it the default of the child
        self._memory_max = memory_max
        self._record = None if record is None else os.path.abspath(record)

    def __getstate__(self) -> dict[str, Any]:
        """The target's arguments travel in one sealed memfd, however many tensors they hold."""
        from ullage import _shipping

        state = dict(self.__dict__)
        # `_target`, `_args` and `_kwargs` of BaseProcess, which takes them away after the start.
        parts = [state.pop(name) for name in _ARGUMENTS]
        shipped = state["_shipped"] = _shipping.ship(parts)
        self._memory = shipped.memory  # its descriptor must be open when the child starts
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        parts = state.pop("_shipped").unpack()
        self.__dict__.update(state)
        self.__dict__.update(zip(_ARGUMENTS, parts))

    @staticmethod
    def _Popen(process_obj: Process) -> _Popen:
        return _Popen(process_obj)

    @property
    def verdict(self) -> dict[str, Any] | None:
        """The verdict (schema 1 of `ullage run --json`) once the process has ended; None before that, and
        where ullage could not write one."""
        popen: Any = getattr(self, "_popen", None)
        if popen is None or popen.poll() is None:
            return None
        verdict: dict[str, Any] | None = popen.verdict
        return verdict


class _Popen(popen_spawn_posix.Popen):
    """As multiprocessing's Popen of `spawn`, with `ullage run` in front of the command."""

    method = "spawn"
    pid: int
    sentinel: int

    def _launch(self, process_obj: Process) -> None:
        self.verdict: dict[str, Any] | None = None
        self._watcher: int | None = None
        self._private: str | None = None
        tracker: int = resource_tracker.getfd()  # type: ignore[assignment]
        fds: list[int] = self._fds  # type: ignore[attr-defined]
        fds.append(tracker)
        orders = _starting.Orders(self, process_obj, None)
        with orders.passed():
            watched = os.environ.get("ULLAGE_DISABLE") != "1" and self._start(process_obj, orders, tracker, True)
            if not watched:
                self._start(process_obj, orders, tracker, False)

    def _start(self, process_obj: Process, orders: _starting.Orders, tracker: int, watch: bool) -> bool:
        """Starts the child; False where ullage could not start it, and nothing runs."""
        front = self._front(process_obj) if watch else []
        if front is None:
            return False
        # The child keeps child_w as long as it lives; it reads its orders from child_r, says its pid on pid_w.
        parent_r, child_w = os.pipe()
        child_r, parent_w = os.pipe()
        pid_r, pid_w = os.pipe()
        try:
            child = [spawn.get_executable(), *util._args_from_interpreter_flags(), "-c"]  # type: ignore[attr-defined]
            child.append(_CHILD % (pid_w, pid_w, tracker, child_r))
            command = [os.fsdecode(part) for part in [*front, *child, "--multiprocessing-fork"]]
            passed = [*self._fds, child_r, child_w, pid_w]  # type: ignore[attr-defined]
            started = util.spawnv_passfds(os.fsencode(command[0]), command, passed)
        except BaseException:
            for fd in (parent_r, parent_w, pid_r):
                os.close(fd)
            raise
        finally:
            for fd in (child_r, child_w, pid_w):
                os.close(fd)
        with os.fdopen(pid_r, "rb") as said:
            line = said.readline()
        if watch and not line.strip().isdigit():
            # ullage ended before the child began: its own words are on stderr.
            _, status = os.waitpid(started, 0)
            os.close(parent_r)
            os.close(parent_w)
            self._forget_private()
            code = os.waitstatus_to_exitcode(status)
            warnings.warn(f"ullage could not start the process (status {code}); it runs unwatched", stacklevel=6)
            return False
        self.pid = int(line) if line.strip().isdigit() else started
        self._watcher = started
        self.sentinel = parent_r
        self.finalizer = util.Finalize(self, util.close_fds, [parent_r, parent_w])  # type: ignore[attr-defined]
        with contextlib.suppress(BrokenPipeError):  # it has ended already, as its sentinel says
            orders.tell(parent_w)
        return True

    def _front(self, process_obj: Process) -> list[str] | None:
        try:
            binary = find_binary()
        except NotInstalled as error:
            warnings.warn(f"{error}; the process runs unwatched", stacklevel=7)
            return None
        self._private = tempfile.mkdtemp(prefix="ullage-process-")
        front = [binary, "run", "--quiet", "--json", os.path.join(self._private, "verdict.json")]
        if process_obj._memory_max is not None:
            front += ["--memory-max", str(process_obj._memory_max)]
        if process_obj._record is not None:
            front += ["--record", process_obj._record]
        return [*front, "--"]

    def poll(self, flag: int = os.WNOHANG) -> int | None:
        if self.returncode is None and self._watcher is not None:
            try:
                pid, status = os.waitpid(self._watcher, flag)
            except OSError:
                return None  # as multiprocessing: not our child
            if pid == self._watcher:
                self._watcher_ended(os.waitstatus_to_exitcode(status))
        if self.returncode is None and self._watcher is None:
            # ullage was killed; the child lives on, and its exit status went to nobody.
            if connection.wait([self.sentinel], 0 if flag == os.WNOHANG else None):
                self.returncode = _STATUS_LOST
        returncode: int | None = self.returncode
        return returncode

    def _watcher_ended(self, code: int) -> None:
        watched = self._private is not None
        self._read_verdict()
        if watched and self.verdict is None and (code < 0 or code == _ULLAGE_FAILED):
            self._watcher = None
            return
        outcome = (self.verdict or {}).get("outcome", {})
        by_signal = outcome.get("signal") is not None if self.verdict is not None else code <= 128 + signal.NSIG
        # To a parent that waits, ullage says 128 + N for a signal.
        self.returncode = 128 - code if watched and by_signal and code > 128 else code

    def _read_verdict(self) -> None:
        if self._private is not None:
            try:
                with open(os.path.join(self._private, "verdict.json"), encoding="utf-8") as file:
                    self.verdict = json.load(file)
            except (OSError, ValueError):
                self.verdict = None
            self._forget_private()

    def _forget_private(self) -> None:
        if self._private is not None:
            shutil.rmtree(self._private, ignore_errors=True)
            self._private = None

    def _send_signal(self, sig: int) -> None:
        if self.poll() is None:
            try:
                os.kill(self.pid, sig)
            except ProcessLookupError:
                pass  # ended; ullage is about to say so
