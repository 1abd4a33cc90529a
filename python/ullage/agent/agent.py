"""What a Python of the job tells ullage: that it started, what it is in the job, and what stood around it
at the moment when an exception left it.

Speaks JSON datagrams (crates/observe/model/src/agent.rs) over one SOCK_SEQPACKET socket. The surprise: at the
limits it reports on, nothing can be opened, mapped or imported. So there are only modules that are compiled into
CPython, or whose byte code was read at the start, a socket made beforehand, one descriptor that is closed for the
count so that another can be opened, and `fstat` before each use, since a program may have closed our descriptor and
got its number for a file of its own. Nothing here raises into the job, calls code of the job, or takes a lock:
python/agent says where it runs.
"""

import gc
import posix
import sys

import _ullage_common as common  # put into sys.modules by start.py, as all parts

MAX_REPORTS = 16
MOST_MESSAGE_BYTES = 1 << 16  # what is longer is dropped by whoever listens (agent_socket.rs)
ACKNOWLEDGE_S = 0.01
SO_PEERCRED = 17

_connection = None  # (descriptor, device, inode) of the socket
_reserve = None  # the same of /proc/self/status, which is closed so that another can be opened
_filters = 0  # of system calls, that were there at the start
_reports = 0
_reported = None  # where the last exception left, and its id
_failed = False  # the process itself ends by an exception
_loader = None  # settings of the last loader iterator; a forked child has its parent's
_loads = None  # (pid, what tells what iterators keep) of a process that reads a loader itself
_process = None  # (name, start method) where multiprocessing started this process
forked = False  # this interpreter began in another process
last_words = []  # functions called before the last message, with its figures, to which they may add
callers = {}  # id of a code object that prints an exception it swallows -> where that exception left


def start(load_native):
    """Connects, says hello and hooks the end of the program. Without a listener, or behind a filter of system calls
    that `ullage run` itself is not behind: nothing at all, and False."""
    global _filters
    path = posix.environ.get(b"ULLAGE_AGENT_SOCKET")
    if not path:
        return False
    fd = posix.open("/proc/self/status", posix.O_RDONLY | posix.O_CLOEXEC)
    try:
        _filters = filters(posix.read(fd, 4096))
        around = posix.environ.get(b"ULLAGE_AGENT_FILTERS", b"")
        if around.isdigit() and _filters > int(around):
            return False
        native = load_native()
        common.use(native)
        if not _connect(path):
            return False
    finally:
        posix.close(fd)
    hello = {"kind": "hello", "python": _version(), "forked": False, "native": native is not None}
    attempt = posix.environ.get(b"TORCHELASTIC_RESTART_COUNT", b"")
    if attempt.isdigit():
        hello["attempt"] = int(attempt)
    send(hello)
    import atexit

    if native is None:
        if common.replaces(b"EXCEPTHOOK"):
            _hook_main_without_native()
        return True
    loud = posix.environ.get(b"ULLAGE_AGENT_DEBUG") == b"1"
    native.reset_with(after_fork, type(_Any().method), loud, common.end_of_tracing_may_crash(sys.version_info[:3]))
    native.collector(gc.enable, gc.disable, gc.isenabled)
    _tell_native()
    # Its own thread ends before, and begins again after (python/agent, waker.rs).
    posix.register_at_fork(before=native.before_fork, after_in_parent=native.after_fork, after_in_child=native.in_child)
    if common.replaces(b"EXCEPTHOOK"):
        sys.excepthook = stand_in(sys.excepthook, sys, "__excepthook__", _on_excepthook, 0)
    if common.replaces(b"AUDIT"):
        sys.addaudithook = native.stand_in(sys.addaudithook, None, 3)
    atexit.register(native.at_exit(_at_exit))
    return True


class _Any:
    def method(self):
        pass


def _version():
    return "%d.%d.%d" % sys.version_info[:3]


def filters(status):
    """How many filters of system calls this process is behind, by its /proc/PID/status (before Linux 5.9: whether)."""
    for name in (b"\nSeccomp_filters:", b"\nSeccomp:"):
        _, found, after = status.partition(name)
        if found:
            return int(after.split(None, 1)[0])
    return 0


def stand_in(original, module, other_name, callback, which):
    """Both names, so that `sys.excepthook is sys.__excepthook__` stays as true as it was."""
    made = common.native.stand_in(original, callback, which)
    if getattr(module, other_name, None) is original:
        setattr(module, other_name, made)
    return made


def _tell_native():
    hello = _json({"kind": "hello", "python": _version(), "forked": True, "native": True}).encode()
    native = common.native
    native.connection(-1 if _connection is None else _connection[0], hello, 1.0)
    native.status(-1 if _reserve is None else _reserve[0], _filters)


# --- the socket -----------------------------------------------------------------------------------------


def _connect(path):
    global _connection
    try:
        fd = _connected_without_native(path) if common.native is None else common.native.connect(path)
        if fd < 0:
            return False
        before = _connection
        place = before[0] if before is not None and _is_the_same(before) else None
        _connection = _claim(_move_up(fd, place))
    except OSError:
        return False
    if _reserve is None or not _is_the_same(_reserve):
        _make_reserve()
        if common.native is not None:
            common.native.room(True)
    return True


def _connected_without_native(path):
    import _socket

    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET | _socket.SOCK_CLOEXEC | _socket.SOCK_NONBLOCK)
    try:
        sock.connect(path)
        peer = sock.getsockopt(_socket.SOL_SOCKET, SO_PEERCRED, 12)
        known = int.from_bytes(peer[4:8], sys.byteorder) in (0, posix.getuid(), posix.geteuid())
        return sock.detach() if known else -1
    finally:
        sock.close()


def _move_up(fd, place):
    """Moves a descriptor out of the low numbers, which programs count on; on `place` where that is ours."""
    if place is None:
        limit = posix.sysconf("SC_OPEN_MAX")
        top = min(limit, 1024) if limit > 0 else 1024
        for number in range(top - 1, max(top - 64, top // 2), -1):
            try:
                posix.fstat(number)
            except OSError:
                place = number
                break
        else:
            return fd
    try:
        posix.dup2(fd, place, False)
    except OSError:
        return fd
    posix.close(fd)
    return place


def _claim(fd):
    facts = posix.fstat(fd)
    return fd, facts.st_dev, facts.st_ino


def _is_the_same(claim):
    try:
        facts = posix.fstat(claim[0])
    except OSError:
        return False
    return facts.st_dev == claim[1] and facts.st_ino == claim[2]


def _make_reserve():
    # By it python/agent also counts the filters of system calls.
    global _reserve
    try:
        fd = posix.open("/proc/self/status", posix.O_RDONLY | posix.O_CLOEXEC)
        _reserve = _claim(_move_up(fd, None))
    except OSError:
        _reserve = None
    if common.native is not None:
        common.native.status(-1 if _reserve is None else _reserve[0], _filters)


def _release_reserve():
    global _reserve
    if common.native is not None:
        common.native.status(-1, _filters)
    if _reserve is not None and _is_the_same(_reserve):
        posix.close(_reserve[0])
    _reserve = None


def send(message, wait=False):
    """Sends one message; with `wait`, gives ullage a moment to look at this process before it goes on."""
    if _connection is None or not _is_the_same(_connection):
        return False
    data = _json(message).encode("utf-8", "replace")
    if len(data) > MOST_MESSAGE_BYTES:
        return False
    if common.native is not None:
        return common.native.speak(_connection[0], data, ACKNOWLEDGE_S if wait else 0.0)
    _socket = sys.modules["_socket"]
    # A socket object for the length of this call only: one that lived longer would close the number at the
    # interpreter's end, whosever it is by then. No posix.write: it may end in SIGPIPE.
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, _connection[0])
    try:
        sock.send(data, _socket.MSG_DONTWAIT | _socket.MSG_NOSIGNAL)
        if wait:
            sock.settimeout(ACKNOWLEDGE_S)
            sock.recv(1)
    finally:
        sock.detach()
    return True


def after_fork():
    """In a forked child, as soon as it has something to do or to tell: a connection of its own, since an
    acknowledgement on a shared one could reach either."""
    global _process, forked, _reports, _reported, _failed, _reserve
    _process = _reported = None
    _failed = False
    forked = True
    _reports = 0
    for begins_anew in common.in_child:
        try:
            begins_anew()
        except Exception:
            pass
    if _connection is None or not _is_the_same(_connection):
        return
    # Its own stands in the same place already (python/agent, sandbox.rs).
    _reserve = None if _reserve is None else _claim(_reserve[0])
    try:
        _connect(posix.environ.get(b"ULLAGE_AGENT_SOCKET", b""))
    finally:
        _tell_native()


# --- JSON, without the json module ----------------------------------------------------------------------

_ESCAPES = {code: "\\u%04x" % code for code in range(32)}
_ESCAPES.update({34: '\\"', 92: "\\\\"})


def _json(value):
    kind = type(value)
    if kind is str:
        return '"' + value.translate(_ESCAPES) + '"'
    if value is True:
        return "true"
    if value is False:
        return "false"
    if kind is int:
        return str(value)
    if kind is float:
        return repr(value) if value - value == 0 else "null"
    if kind is dict:
        return "{" + ",".join([_json(k) + ":" + _json(v) for k, v in value.items() if v is not None]) + "}"
    if kind is list:
        return "[" + ",".join([_json(item) for item in value]) + "]"
    if issubclass(kind, str):
        return _json(str.__str__(value))
    return "null"


# --- what this process is -------------------------------------------------------------------------------


def began_as(name, start_method):
    """multiprocessing has started this process."""
    global _process
    _process = name, start_method


def reads_loader():
    return _loads is not None and _loads[0] == posix.getpid()


def loads(kept_by_iterators, settings=None):
    """This process reads a loader, with these settings."""
    global _loads, _loader
    _loads = posix.getpid(), kept_by_iterators
    if settings is not None:
        _loader = settings


# --- exceptions that leave ------------------------------------------------------------------------------

_NAME = type.__dict__["__name__"].__get__  # as CPython itself reads it


def report(left, error, name=""):
    """Tells of an exception that leaves this program, process, thread or worker. Once each."""
    global _reports, _reported, _failed
    try:
        if error is None or issubclass(type(error), (SystemExit, KeyboardInterrupt, GeneratorExit)):
            return
        # Only those two are met twice; elsewhere an id may be that of an earlier exception, long freed.
        ends = left in ("main", "process")
        mark = (left, id(error)) if ends else None
        if (
            (mark is not None and mark == _reported)
            or _reports >= MAX_REPORTS
            or _connection is None
            or not _is_the_same(_connection)
        ):
            return
        _reports += 1
        if mark is not None:
            _reported, _failed = mark, True
        if common.native is not None:
            common.native.room(False)
        try:
            failure = common.load("failure")
            message = failure.describe(error, _release_reserve, _make_reserve, _connection[0], ends)
        except MemoryError:
            # No room for what describes it: its type alone says much.
            message = {"kind": "exception", "type_name": _NAME(type(error)), "counts": {}}
        message.update(
            {
                "left": left,
                "name": name,
                "loader": _loader,
                "sharing_strategy": sharing_strategy(),
                "started_by": _process[1] if _process is not None else None,
            }
        )
        message["counts"]["kept_by_iterators"] = _kept_by_iterators(ends)
        if not send(message, True):
            # Too long for one message, perhaps.
            message.update(stack=[], chain=[], text=message.get("text", "")[:200])
            send(message, True)
        del message
        if common.native is not None:
            common.native.room(True)
    except Exception:
        pass


def _kept_by_iterators(ends):
    """Looked at in processes that read loaders only."""
    try:
        return _loads[1](ends) if reads_loader() else None
    except Exception:
        return None


def name_of(left):
    """What an exception left: the feeder of a queue, or this process."""
    if left == "thread":
        return "QueueFeederThread"
    return _process[0] if _process is not None else ""


def sharing_strategy():
    return common.plain(common.names("torch.multiprocessing").get("_sharing_strategy"))


def _on_excepthook(_handled, arguments, _keywords):
    # Also called by programs that print an exception they have caught; the interpreter, and only it, sets
    # sys.last_value first. A fork server calls it for a child that could not even start.
    value = arguments[1] if len(arguments) > 1 else None
    if issubclass(type(value), BaseException) and (
        getattr(sys, "last_value", None) is value or _called_by_forkserver()
    ):
        report("main", value)


def _called_by_forkserver():
    frame = common.caller()
    return frame is not None and frame.f_code.co_filename.endswith("/multiprocessing/forkserver.py")


def _hook_main_without_native():
    """The one thing that is told by a Python that cannot load python/agent, beside that it started."""
    before = sys.excepthook

    def excepthook(exctype, value, traceback, /):
        if getattr(sys, "last_value", None) is value:
            report("main", value)
        before(exctype, value, traceback)

    excepthook.__doc__ = before.__doc__
    if before is sys.__excepthook__:
        sys.__excepthook__ = excepthook
    sys.excepthook = excepthook


def _at_exit():
    # A program that put its own hook in place of ours: the exception is still there.
    if not hasattr(sys, "ps1") and not sys.flags.interactive:
        error = getattr(sys, "last_exc", None)
        error = getattr(sys, "last_value", None) if error is None else error
        if issubclass(type(error), BaseException):
            report("main", error)
    say_bye()


_said_bye = None  # pid: a forked child has its own end


def say_bye():
    global _said_bye
    if _said_bye == posix.getpid() or _failed:
        return
    _said_bye = posix.getpid()
    figures = {}
    for says in last_words:
        try:
            says(figures)
        except Exception:
            pass
    figures["allocated_blocks"] = float(sys.getallocatedblocks())
    for generation, stats in enumerate(gc.get_stats()):
        figures["gc_collections_%d" % generation] = float(stats.get("collections", 0))
        figures["gc_collected_%d" % generation] = float(stats.get("collected", 0))
    figures["gc_uncollectable"] = float(len(gc.garbage))
    try:
        _arena_figures(figures)
    except Exception:
        pass
    send({"kind": "bye", "figures": figures, "kept_by_iterators": _kept_by_iterators(True)})


def _arena_figures(figures):
    """How the bytes of the loaders' messages travelled; told by the process that made the arena."""
    arena = sys.modules.get("ullage._arena")
    travelled = None if arena is None else arena.travelled()
    for name, value in (travelled or {}).items():
        figures["arena_" + name] = float(value)
