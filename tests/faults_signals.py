"""Signals that raise in the main thread of a job at random moments, and what became of each exception (faults.py)."""

import ctypes
import faulthandler
import os
import signal
import sys
import sysconfig
import time

PATIENCE = 40  # seconds without an event after which a job is called hanging: a failure, never waited for otherwise
SETTLE = 20  # for processes to end that were about to
CHILD = "a child"
# The installed package. Not "/ullage/": a clone may be called so, and the jobs lie in it.
PACKAGE = os.path.join(sysconfig.get_path("platlib"), "ullage") + os.sep


class Late(Exception):
    """What the handler of SIGALRM raises."""


class Asynchronous(Exception):
    """Raised in another thread, by PyThreadState_SetAsyncExc."""


class Timer:
    """A timer of the kernel's that sends any signal, once, and that no child inherits (timer_create(2))."""

    _libc = ctypes.CDLL(None, use_errno=True)

    def __init__(self, number):
        event = (ctypes.c_int * 16)()
        event[2] = number  # after sigev_value; sigev_notify 0 is SIGEV_SIGNAL
        self._id = ctypes.c_void_p()
        if self._libc.timer_create(time.CLOCK_MONOTONIC, event, ctypes.byref(self._id)) != 0:
            raise OSError(ctypes.get_errno(), "timer_create")

    def after(self, seconds):
        until = (ctypes.c_long * 4)(0, 0, int(seconds), max(1, int(seconds % 1 * 1e9)))
        self._libc.timer_settime(self._id, 0, until, None)


class Signals:
    """Raises in the main thread at random moments, and knows what became of each exception."""

    KINDS = {signal.SIGALRM: Late, signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: SystemExit}

    def __init__(self, say):
        self.say = say
        self.armed = self.fired = None
        self.pid = os.getpid()
        self.by_python = 0  # exceptions that CPython could raise nowhere, in code that is not ours
        self.where = os.memfd_create("faults")
        self.took = {}  # operation -> seconds, a running mean
        self.timers = {}
        for number in self.KINDS:
            signal.signal(number, self._handle)
            faulthandler.register(number, file=self.where, all_threads=False, chain=True)
            self.timers[number] = Timer(number)
        sys.unraisablehook = self._unraisable

    def _handle(self, number, _frame):
        if os.getpid() != self.pid and self.armed != CHILD:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        elif self.armed is not None:
            self.fired, self.armed = self.armed, None
            raise self.KINDS[number](self.fired)

    def _unraisable(self, told):
        where = told.object
        code = getattr(where, "__code__", None)
        name = getattr(code, "co_filename", "") or str(getattr(where, "__module__", ""))
        # The one hook of ours that is of Python's: docs/decisions/0013-locks-and-forks.md.
        known = name.endswith("/_zygote/trainer.py") and where.__name__ == "_in_forked_child"
        if isinstance(told.exc_value, tuple(self.KINDS.values())) and (not name.startswith(PACKAGE) or known):
            self.by_python += 1
        os.write(2, f"unraisable in {where!r} ({name}): {told.exc_value!r}\n".encode())

    def turn(self, event, number, operation, chance):
        """One signal of this kind somewhere in this operation; whether its exception arrived."""
        mean = self.took.get(operation.__name__, 0.001)
        os.ftruncate(self.where, 0)
        os.lseek(self.where, 0, os.SEEK_SET)
        self.fired, caught, others = None, None, self.by_python
        try:
            self.armed = event
            self.timers[number].after(chance.uniform(0, 2 * mean))
            while self.fired is None:
                begin = time.perf_counter()
                operation()
                took = time.perf_counter() - begin
                self.took[operation.__name__] = mean = 0.9 * mean + 0.1 * took
        except tuple(self.KINDS.values()) as error:
            caught = error
        self.armed = None
        inside = self._arrived()
        fine = type(caught) is self.KINDS[number] and caught.args == (event,)
        del caught  # its traceback holds this frame
        if fine:
            return "fine", inside
        return ("by_python" if self.by_python > others else "lost"), inside

    def _arrived(self):
        """Where in our code the signal arrived; None where it did in another's."""
        for line in os.pread(self.where, 4096, 0).decode(errors="replace").splitlines()[1:9]:
            _, _, rest = line.partition('File "')
            path, _, name = rest.partition('"')
            name = name.rpartition(" in ")[2]
            if path.startswith(PACKAGE):
                return f"{os.path.basename(path)}:{name}"
            if name.startswith("agent_"):  # does nothing but what makes the agent look
                return name
            if os.path.dirname(path) == os.path.dirname(__file__):
                return None
        return None
