"""What a Python of the job tells ullage: that it started, what it is in the job, and what stood around it
at the moment when an exception left it.

Speaks JSON datagrams (crates/observe/model/src/agent.rs) over one SOCK_SEQPACKET socket. The surprise: at the
limits it reports on, nothing can be opened, mapped, imported or started. So there is no thread here, only
modules that are compiled into CPython or loaded at the start, a socket made beforehand, one descriptor held in
reserve and closed for the count, and `fstat` before each use, since a program may have closed our descriptor and
got its number for a file of its own. Nothing here raises into the job.
"""

import gc
import posix
import sys

import _socket
import _ullage_counts  # counts.py, put into sys.modules by sitecustomize.py

MAX_REPORTS = 16
MAX_TEXT = 2000
MAX_FRAMES = 40
MAX_CHAIN = 8
ACKNOWLEDGE_S = 0.1
SO_PEERCRED = 17

_connection = None  # (descriptor, device, inode) of the socket
_reserve = None  # the same of the descriptor that is closed so that another can be opened
_reports = 0
_reported = None  # where the last exception left, and its id
_failed = False  # the process itself ends by an exception
figures_at_end = None  # what else is told then; set by hooks.py
loader = None  # settings of the last loader iterator; a forked child has its parent's
loader_of = None  # pid of the process that made it
process = None  # (name, start method) where multiprocessing started this process
forked = False  # this interpreter began in another process
tell_inside = None  # tells what this Python is made of, once; set by hooks.py


def start():
    """Connects, says hello and hooks the end of the program. Without a listener: nothing at all, and False."""
    path = posix.environ.get(b"ULLAGE_AGENT_SOCKET")
    if not path or not _connect(path):
        return False
    _say_hello(False)
    posix.register_at_fork(after_in_child=_after_fork)
    _hook_main()
    import atexit

    atexit.register(_at_exit)
    return True


# --- the socket -----------------------------------------------------------------------------------------


def _connect(path):
    global _connection, _reserve
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET | _socket.SOCK_CLOEXEC | _socket.SOCK_NONBLOCK)
    try:
        sock.connect(path)
        peer = sock.getsockopt(_socket.SOL_SOCKET, SO_PEERCRED, 12)
        if int.from_bytes(peer[4:8], sys.byteorder) not in (0, posix.getuid(), posix.geteuid()):
            return False
        before = _connection
        place = before[0] if before is not None and _is_ours(before) else None
        _connection = _claim(_move_up(sock.detach(), place))
    except OSError:
        return False
    finally:
        sock.close()
    if _reserve is None or not _is_ours(_reserve):
        _make_reserve()
    return True


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


def _is_ours(claim):
    try:
        facts = posix.fstat(claim[0])
    except OSError:
        return False
    return (facts.st_mode & 0o170000) == 0o140000 and facts.st_dev == claim[1] and facts.st_ino == claim[2]


def _make_reserve():
    # An unbound socket: its inode is nobody else's, so that it can be told from a file at the same number.
    global _reserve
    try:
        sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_DGRAM | _socket.SOCK_CLOEXEC)
        _reserve = _claim(_move_up(sock.detach(), None))
    except OSError:
        _reserve = None


def _release_reserve():
    global _reserve
    if _reserve is not None and _is_ours(_reserve):
        posix.close(_reserve[0])
    _reserve = None


def send(message, wait=False):
    """Sends one message; with `wait`, gives ullage 0.1 s to look at this process before it goes on."""
    if _connection is None or not _is_ours(_connection):
        return False
    data = _json(message).encode("utf-8", "replace")
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


def _after_fork():
    # The child needs a connection of its own: an acknowledgement on a shared one could reach either.
    global process, forked, _reports, _reported, _failed
    try:
        process = _reported = None
        _failed = False
        forked = True
        _reports = 0
        if _connection is None or not _is_ours(_connection):
            return
        _release_reserve()
        _connect(posix.environ.get(b"ULLAGE_AGENT_SOCKET", b""))
        if _reserve is None:
            _make_reserve()
        _say_hello(True)
    except Exception:
        pass


def _say_hello(forked):
    try:
        send({"kind": "hello", "python": "%d.%d.%d" % sys.version_info[:3], "forked": forked})
    except Exception:
        pass


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
    return "null"


# --- exceptions that leave ------------------------------------------------------------------------------


def report(left, error, name=""):
    """Tells of an exception that leaves this program, process, thread or worker. Once each."""
    global _reports, _reported, _failed
    try:
        if error is None or isinstance(error, (SystemExit, KeyboardInterrupt, GeneratorExit)):
            return
        # Only those two are met twice; elsewhere an id may be that of an earlier exception, long freed.
        mark = (left, id(error)) if left in ("main", "process") else None
        if (
            (mark is not None and mark == _reported)
            or _reports >= MAX_REPORTS
            or _connection is None
            or not _is_ours(_connection)
        ):
            return
        _reports += 1
        if mark is not None:
            _reported, _failed = mark, True
        torch = sys.modules.get("torch")
        code = getattr(error, "errno", None) if isinstance(error, OSError) else None
        message = {
            "kind": "exception",
            "left": left,
            "name": name,
            "type_name": type(error).__name__,
            "errno": code if type(code) is int else None,
            "counts": _ullage_counts.take(error, _release_reserve, _make_reserve),
            "text": _text(error),
            "stack": _stack(error.__traceback__),
            "chain": _chain(error),
            "loader": loader,
            "start_method": _start_method(),
            "sharing_strategy": sharing_strategy(),
            "started_by": process[1] if process is not None else None,
            "torch": plain(getattr(torch, "__version__", None)),
            "cuda_initialized": _cuda_initialized(),
        }
        message["counts"]["kept_by_iterators"] = _kept_by_iterators()
        send(message, True)
    except Exception:
        pass


def _kept_by_iterators():
    """Looked at in processes that made loaders only: there the module that weighs is loaded."""
    try:
        weigh = sys.modules.get("_ullage_weigh")
        return weigh.kept_by_iterators() if loader_of == posix.getpid() and weigh is not None else None
    except Exception:
        return None


def plain(value):
    return None if value is None else str(value)[:200]


def _text(error):
    try:
        text = str(error)
        # The traceback of another process has its cause at its end.
        return text if len(text) <= MAX_TEXT else text[: MAX_TEXT // 2] + text[-MAX_TEXT // 2 :]
    except Exception:
        return ""


def _stack(traceback):
    frames = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        frames.append("%s:%s %s" % (code.co_filename, traceback.tb_lineno, code.co_name))
        traceback = traceback.tb_next
    return frames if len(frames) <= MAX_FRAMES else frames[:10] + frames[10 - MAX_FRAMES :]


def _chain(error):
    chain, seen = [], {id(error)}
    while len(chain) < MAX_CHAIN:
        following = error.__cause__
        if following is None and not error.__suppress_context__:
            following = error.__context__
        if following is None or id(following) in seen:
            break
        error = following
        seen.add(id(error))
        chain.append("%s: %s" % (type(error).__name__, _text(error)))
    return chain


def _start_method():
    # Read from the attributes: get_start_method() without allow_none would fix the default for good.
    context = getattr(sys.modules.get("multiprocessing.context"), "_default_context", None)
    actual = getattr(context, "_actual_context", None)
    return plain(getattr(actual, "_name", None))


def sharing_strategy():
    return plain(getattr(sys.modules.get("torch.multiprocessing"), "_sharing_strategy", None))


def _cuda_initialized():
    value = getattr(sys.modules.get("torch.cuda"), "_initialized", None)
    return value if isinstance(value, bool) else None


def _hook_main():
    before = sys.excepthook

    def excepthook(exctype, value, traceback, /):
        # Also called by programs that print an exception they have caught; the interpreter, and only it,
        # sets sys.last_value first. A fork server calls it for a child that could not even start.
        try:
            if getattr(sys, "last_value", None) is value or _called_by_forkserver():
                report("main", value)
        except Exception:
            pass
        before(exctype, value, traceback)

    excepthook.__doc__ = before.__doc__
    # Both names, so that `sys.excepthook is sys.__excepthook__` stays as true as it was.
    if before is sys.__excepthook__:
        sys.__excepthook__ = excepthook
    sys.excepthook = excepthook


def _called_by_forkserver():
    frame = sys._getframe(2)
    return frame is not None and frame.f_code.co_filename.endswith("/multiprocessing/forkserver.py")


def _at_exit():
    try:
        # A program that put its own hook in place of ours: the exception is still there.
        if not hasattr(sys, "ps1") and not sys.flags.interactive:
            error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
            if isinstance(error, BaseException):
                report("main", error)
        say_bye()
    except Exception:
        pass


_said_bye = None  # pid: a forked child has its own end


def say_bye():
    global _said_bye
    if _said_bye == posix.getpid() or _failed:
        return
    _said_bye = posix.getpid()
    if tell_inside is not None:
        try:
            tell_inside()
        except Exception:
            pass
    figures = {"allocated_blocks": float(sys.getallocatedblocks())}
    for generation, stats in enumerate(gc.get_stats()):
        figures["gc_collections_%d" % generation] = float(stats.get("collections", 0))
        figures["gc_collected_%d" % generation] = float(stats.get("collected", 0))
    figures["gc_uncollectable"] = float(len(gc.garbage))
    try:
        _allocator_figures(figures)
    except Exception:
        pass
    try:
        _arena_figures(figures)
    except Exception:
        pass
    try:
        if figures_at_end is not None:
            figures.update(figures_at_end())
    except Exception:
        pass
    send({"kind": "bye", "figures": figures, "kept_by_iterators": _kept_by_iterators()})


def _arena_figures(figures):
    """How the bytes of the loaders' messages travelled; told by the process that made the arena."""
    context = sys.modules.get("ullage._context")
    travelled = None if context is None else context.travelled()
    for name, value in (travelled or {}).items():
        figures["arena_" + name] = float(value)


def _allocator_figures(figures):
    """mallinfo2 (glibc 2.33 up), only where the program has loaded ctypes itself."""
    ctypes = sys.modules.get("ctypes")
    if ctypes is None:
        return
    names = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
    kind = type("mallinfo2", (ctypes.Structure,), {"_fields_": [(name, ctypes.c_size_t) for name in names]})
    call = ctypes.CDLL(None).mallinfo2
    call.restype = kind
    info = call()
    for name in ("arena", "hblks", "hblkhd", "uordblks", "fordblks", "keepcost"):
        figures["malloc_" + name] = float(getattr(info, name))
