"""What a Python of the job tells ullage: that it started, what it is in the job, and what stood around it
at the moment when an exception left it.

Speaks JSON datagrams (crates/observe/model/src/agent.rs) over one SOCK_SEQPACKET socket. The surprise: at the
limits it reports on, nothing can be opened, mapped, imported or started. So there is no thread here, only
modules that are compiled into CPython or loaded at the start, a socket made beforehand, one descriptor held in
reserve and closed for the count, and `fstat` before each use, since a program may have
closed our descriptor and got its number for a file of its own. Nothing here raises into the job.
"""

import gc
import posix
import sys

import _socket
import _ullage_counts  # counts.py, put into sys.modules by sitecustomize.py

AGENT_CODE = "<frozen importlib._bootstrap>"  # CPython cuts frames of this name out of tracebacks
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
_loader = None  # settings of the last loader iterator
_process = None  # (name, start method) where multiprocessing started this process
_callers = {}  # id of a code object that prints an exception it swallows -> where that exception left


def start():
    """Connects, says hello and sets the hooks. Without a listener: nothing at all."""
    path = posix.environ.get(b"ULLAGE_AGENT_SOCKET")
    if not path or not _connect(path):
        return
    _say_hello(False)
    posix.register_at_fork(after_in_child=_after_fork)
    _hook_main()
    import atexit

    atexit.register(_at_exit)
    for name in list(_ON_IMPORT):
        module = sys.modules.get(name)
        if module is not None:
            _imported(module)
    sys.meta_path.insert(0, _Finder)


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


def _send(message, wait=False):
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
    global _process, _reports, _reported, _failed
    try:
        _process = _reported = None
        _failed = False
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
        _send({"kind": "hello", "python": "%d.%d.%d" % sys.version_info[:3], "forked": forked})
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


def _report(left, error, name=""):
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
            "loader": _loader,
            "start_method": _start_method(),
            "sharing_strategy": _sharing_strategy(),
            "started_by": _process[1] if _process is not None else None,
            "torch": _plain(getattr(torch, "__version__", None)),
            "cuda_initialized": _cuda_initialized(),
        }
        _send(message, True)
    except Exception:
        pass


def _plain(value):
    return None if value is None else str(value)[:200]


def _text(error):
    try:
        return str(error)[:MAX_TEXT]
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
    return _plain(getattr(actual, "_name", None))


def _sharing_strategy():
    return _plain(getattr(sys.modules.get("torch.multiprocessing"), "_sharing_strategy", None))


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
                _report("main", value)
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
                _report("main", error)
        _say_bye()
    except Exception:
        pass


_said_bye = None  # pid: a forked child has its own end


def _say_bye():
    global _said_bye
    if _said_bye == posix.getpid() or _failed:
        return
    _said_bye = posix.getpid()
    figures = {"allocated_blocks": float(sys.getallocatedblocks())}
    for generation, stats in enumerate(gc.get_stats()):
        figures["gc_collections_%d" % generation] = float(stats.get("collections", 0))
        figures["gc_collected_%d" % generation] = float(stats.get("collected", 0))
    figures["gc_uncollectable"] = float(len(gc.garbage))
    try:
        _allocator_figures(figures)
    except Exception:
        pass
    _send({"kind": "bye", "figures": figures})


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


# --- hooks that wait for a module -----------------------------------------------------------------------


def _dress(function, original):
    """Lets a wrapper pass for the function that it wraps."""
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        try:
            setattr(function, name, getattr(original, name))
        except AttributeError:
            pass
    function.__wrapped__ = original
    return function


def _on_threading(threading):
    before = threading.excepthook

    def excepthook(args, /):
        try:
            thread = args.thread
            _report("thread", args.exc_value, getattr(thread, "_name", "") or "")
        except Exception:
            pass
        before(args)

    excepthook.__doc__ = before.__doc__
    if getattr(threading, "__excepthook__", None) is before:
        threading.__excepthook__ = excepthook
    threading.excepthook = excepthook


def _on_traceback(traceback):
    # A Process, a queue's feeder and torch's spawn print or store the exception that leaves them by one of
    # these two; in there it is still alive, with its frames. No frame of ours is in what they print.
    def watch(name):
        original = getattr(traceback, name)

        def wrapper(*args, **kwargs):
            try:
                left = _callers.get(id(sys._getframe(1).f_code))
                if left is not None:
                    _report(left, sys.exc_info()[1], _name_of(left))
            except Exception:
                pass
            return original(*args, **kwargs)

        setattr(traceback, name, _dress(wrapper, original))

    watch("print_exc")
    watch("format_exc")


def _name_of(left):
    if left == "thread":
        return "QueueFeederThread"
    return _process[0] if _process is not None else ""


def _on_multiprocessing_util(util):
    process = sys.modules.get("multiprocessing.process")
    bootstrap = process.BaseProcess._bootstrap.__code__
    _callers[id(bootstrap)] = "process"
    original = util.info

    # The last call of `_bootstrap` before it runs the target, under every start method; register_after_fork
    # is left out under spawn.
    def info(*args):
        try:
            if sys._getframe(1).f_code is bootstrap and "calling self.run" in args[0]:
                _process_begins()
        except Exception:
            pass
        return original(*args)

    util.info = _dress(info, original)


def _process_begins():
    """In the new process, before its target runs."""
    global _process
    try:
        process = sys.modules["multiprocessing.process"].current_process()
        context = sys.modules["multiprocessing.context"]._default_context
        method = process._start_method
        if method is None:
            method = (context._actual_context or context._default_context)._name
        _process = process._name, method
        target = process._target
        target = getattr(target, "func", target)  # functools.partial
        where = getattr(target, "__module__", None) or type(process).__module__
        name = getattr(target, "__qualname__", None) or type(process).__qualname__
        message = {
            "kind": "process",
            "name": process._name,
            "target": "%s.%s" % ("__main__" if where == "__mp_main__" else where, name),
            "worker": _worker_number(target, process),
            "start_method": method,
        }
        finalize = sys.modules["multiprocessing.util"].Finalize
        finalize(None, _at_process_end, exitpriority=1_000_000)
        finalize(None, _after_process_end, exitpriority=-1000)
        _send(message)
    except Exception:
        pass


def _at_process_end():
    """First of multiprocessing's finalizers: up to CPython 3.11 they run while the exception is still in
    flight, and the next ones may wait for children for ever."""
    try:
        _report("process", sys.exc_info()[1], _name_of("process"))
    except Exception:
        pass


def _after_process_end():
    try:
        _say_bye()
    except Exception:
        pass


def _worker_number(target, process):
    code = getattr(target, "__code__", None)
    if code is None or code.co_name != "_worker_loop" or "worker_id" not in code.co_varnames:
        return None
    place = code.co_varnames.index("worker_id")
    number = process._args[place] if place < len(process._args) else process._kwargs.get("worker_id")
    return number if type(number) is int else None


def _on_queues(queues):
    _callers[id(queues.Queue._on_queue_feeder_error.__code__)] = "thread"


def _on_torch_spawn(module):
    _callers[id(module._wrap.__code__)] = "process"


def _on_torch_utils(module):
    def left(args, kwargs):
        where = kwargs.get("where", args[1] if len(args) > 1 else "")
        return ("loader-worker" if "DataLoader worker" in str(where) else "thread"), _name_of("process")

    def error(args, kwargs):
        info = kwargs.get("exc_info", args[0] if args else None)
        return sys.exc_info()[1] if info is None else info[1]

    _watch_wrapper(module.ExceptionWrapper, left, error)


def _on_pool(module):
    for name in ("ExceptionWithTraceback", "_ExceptionWithTraceback"):
        if hasattr(module, name):
            _watch_wrapper(
                getattr(module, name), lambda _a, _k: ("executor-worker", _name_of("process")), lambda args, _k: args[0]
            )


def _watch_wrapper(kind, left, error):
    """Such an object is made only to carry an exception out of a worker."""
    original = kind.__init__

    def __init__(self, *args, **kwargs):
        try:
            where, name = left(args, kwargs)
            _report(where, error(args, kwargs), name)
        except Exception:
            pass
        original(self, *args, **kwargs)

    kind.__init__ = _dress(__init__, original)


def _on_dataloader(module):
    # Called by `_get_iterator` just before it makes the iterator, and back before anything can fail: a
    # wrapper around the iterator itself would stand in the user's traceback.
    original = module.DataLoader.check_worker_number_rationality

    def check_worker_number_rationality(self, *args, **kwargs):
        try:
            if sys._getframe(1).f_code.co_name == "_get_iterator":
                _loader_begins(self)
        except Exception:
            pass
        return original(self, *args, **kwargs)

    module.DataLoader.check_worker_number_rationality = _dress(check_worker_number_rationality, original)


def _loader_begins(loader):
    global _loader
    context = loader.multiprocessing_context
    dataset = type(loader.dataset)
    try:
        length = len(loader.dataset)
    except Exception:
        length = None
    method = getattr(context, "_name", None)
    if method is None:
        default = sys.modules["multiprocessing.context"]._default_context
        method = (default._actual_context or default._default_context)._name
    where = "__main__" if dataset.__module__ == "__mp_main__" else dataset.__module__
    settings = {
        "workers": loader.num_workers,
        "start_method": _plain(method),
        "start_method_is_default": context is None,
        "sharing_strategy": _sharing_strategy(),
        "batch_size": _count(loader.batch_size),
        "prefetch_factor": _count(loader.prefetch_factor),
        "pin_memory": bool(loader.pin_memory),
        "persistent_workers": bool(loader.persistent_workers),
        "dataset": "%s.%s" % (where, dataset.__qualname__),
        "dataset_len": _count(length),
    }
    _loader = settings
    message = {"kind": "loader"}
    message.update(settings)
    _send(message)


def _count(value):
    return value if type(value) is int and value >= 0 else None


_ON_IMPORT = {
    "threading": _on_threading,
    "traceback": _on_traceback,
    "multiprocessing.util": _on_multiprocessing_util,
    "multiprocessing.queues": _on_queues,
    "multiprocessing.pool": _on_pool,
    "concurrent.futures.process": _on_pool,
    "torch._utils": _on_torch_utils,
    "torch.multiprocessing.spawn": _on_torch_spawn,
    "torch.utils.data.dataloader": _on_dataloader,
}


def _imported(module):
    try:
        hook = _ON_IMPORT.pop(module.__name__, None)
        if hook is not None:
            hook(module)
    except Exception:
        pass


def _load(loader, module):
    """exec_module of one loader, once, with our hook after it. Its frame is cut out of tracebacks."""
    del loader.exec_module
    loader.exec_module(module)
    _imported(module)


_load.__code__ = _load.__code__.replace(co_filename=AGENT_CODE)


def _find_spec(name, path=None, target=None):
    if name not in _ON_IMPORT:
        return None
    # Only where the import system asks in order to load: importlib.util.find_spec gets what it always got.
    try:
        if sys._getframe(2).f_code.co_name != "_find_and_load_unlocked":
            return None
    except ValueError:
        return None
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        if finder is _Finder or find is None:
            continue
        spec = find(name, path, target)
        if spec is None:
            continue
        try:
            loader = spec.loader
            if hasattr(loader, "exec_module") and "exec_module" not in vars(loader):
                loader.exec_module = _once(loader)
        except Exception:
            pass
        return spec
    return None


def _once(loader):
    def exec_module(module):
        _load(loader, module)

    exec_module.__code__ = exec_module.__code__.replace(co_filename=AGENT_CODE)
    return exec_module


_find_spec.__code__ = _find_spec.__code__.replace(co_filename=AGENT_CODE)


class _Finder:
    """First in sys.meta_path: finds nothing itself, lets the others find, and is told when it was loaded."""

    find_spec = staticmethod(_find_spec)
