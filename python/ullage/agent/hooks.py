"""Where an exception can leave a Python unseen, what a process is, and when there is time to look at its memory: hooks
that wait for a module.

Each is set when its module is imported, none imports anything itself. The surprise: no frame of ours may stand in
a traceback that the job prints. So what is wrapped are functions that return before anything can fail, or that
are called while the exception is already complete; and what must stand below the job's own code (the loading of
a module) carries the file name that CPython cuts out of tracebacks.
"""

import atexit
import gc
import os
import sys
import time

import _ullage_agent as agent  # put into sys.modules by sitecustomize.py

AGENT_CODE = "<frozen importlib._bootstrap>"  # frames of this name are cut out of tracebacks

FIRST_LOOK_S = 1.0
MUCH_COLLECTED = 1000  # objects: then a look shows what the allocator keeps of them,
EARLY_APART = 10  # and no more often, so that the full look that it puts off comes all the same

_callers = {}  # id of a code object that prints an exception it swallows -> where that exception left
_load_part = None
_weighed = None  # (id, length, weight) of the dataset weighed last
_began = 0.0  # by time.monotonic()
next_look = 0.0  # at memory; by the same
_next_early = 0.0


def install(load_part):
    """Hooks the modules that are there already, and waits for the others. `load_part` loads one of the
    other files beside this one, when it is needed."""
    global _load_part, _began, next_look
    _load_part = load_part
    agent.tell_inside = _tell_inside
    _began = time.monotonic()
    next_look = _began + FIRST_LOOK_S
    atexit.register(_look_no_more)
    os.register_at_fork(after_in_child=_after_fork)
    agent.figures_at_end = _figures_at_end
    gc.callbacks.append(_on_collection)
    time.sleep = _InPassing(time.sleep)
    for name in list(_ON_IMPORT):
        module = sys.modules.get(name)
        if module is not None:
            _imported(module)
    sys.meta_path.insert(0, _Finder)


def dress(function, original):
    """Lets a wrapper pass for the function that it wraps."""
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        try:
            setattr(function, name, getattr(original, name))
        except AttributeError:
            pass
    function.__wrapped__ = original
    return function


# --- moments to look at memory --------------------------------------------------------------------------


def moment(light=False, early=False):
    """Nearly always it is too early. No thread waits for the time to come: so it is asked wherever a program comes by:
    collection, sleep, batch, optimizer's step, model's call. `early`: a short look, which puts the next one off."""
    global next_look, _next_early
    now, due = time.monotonic(), next_look
    early = early and _next_early <= now < due
    if due == float("inf") or now < due and not (early or light):
        return
    next_look = float("inf")
    again = 60.0
    try:
        again = load("memory").look(agent.send, light, early)
        kept = sys.modules.get("_ullage_kept")
        if kept is not None and not early:
            kept.look()
    except Exception:
        pass
    next_look = (due if early else time.monotonic()) + again
    if early:
        _next_early = now + EARLY_APART * again


def load(name):
    return sys.modules.get("_ullage_" + name) or _load_part(name)


def _in(part, name):
    """A hook of another file, which is loaded when it is needed."""
    return lambda module: getattr(load(part), name)(module)


def _figures_at_end():
    """Of a process that was there for a while: another pays for nothing."""
    return load("memory").files() if time.monotonic() >= _began + FIRST_LOOK_S else {}


def _look_no_more():
    # The collector runs for the last time when libraries are gone, and what the program held with them.
    global next_look
    next_look = float("inf")
    if _on_collection in gc.callbacks:
        gc.callbacks.remove(_on_collection)


def _on_collection(phase, info):
    if phase == "stop":
        # A program that waits after it has collected comes by nowhere else for long.
        return moment(early=info["collected"] >= MUCH_COLLECTED and "_ullage_memory" in sys.modules)
    kept = sys.modules.get("_ullage_kept")
    if kept is not None:
        kept.before_collection()


def _after_fork():
    global _began, next_look
    _began = time.monotonic()
    next_look = _began + FIRST_LOOK_S
    for name in ("_ullage_memory", "_ullage_kept"):
        part = sys.modules.get(name)
        if part is not None:
            part.after_fork()


def _on_heavy_import(_module):
    """What a library takes for itself is no growth of the program's."""
    moment(light=True)


class Asked:
    """Stands for a method: that somebody asks for it is the moment to tell of its object. No frame of ours is below the
    method's, nor above it, where a warning would look for who is to blame."""

    def __init__(self, function, tell):
        self.function, self.tell = function, tell

    def __get__(self, one, kind=None):
        if one is not None:
            try:
                self.tell(one)
            except Exception:
                pass
        return self.function.__get__(one, kind)


class _Call:
    def __get__(self, one, kind=None):
        if one is None:
            return self
        moment()
        return one._original


class _InPassing:
    """Stands for a built-in function. Whoever calls it calls the function itself, with no frame of ours between, once
    the attribute `__call__` has been looked up."""

    __slots__ = ("_original",)
    __call__ = _Call()
    __class__ = property(lambda self: type(self._original))
    __doc__ = property(lambda self: self._original.__doc__)
    __module__ = property(lambda self: self._original.__module__)

    def __init__(self, original):
        self._original = original

    def __getattr__(self, name):
        return getattr(self._original, name)

    def __repr__(self):
        return repr(self._original)

    def __reduce__(self):
        return self._original.__name__


# --- exceptions that leave ------------------------------------------------------------------------------


def _on_threading(threading):
    before = threading.excepthook

    def excepthook(args, /):
        try:
            thread = args.thread
            agent.report("thread", args.exc_value, getattr(thread, "_name", "") or "")
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
                    agent.report(left, sys.exc_info()[1], _name_of(left))
            except Exception:
                pass
            return original(*args, **kwargs)

        setattr(traceback, name, dress(wrapper, original))

    watch("print_exc")
    watch("format_exc")


def _name_of(left):
    if left == "thread":
        return "QueueFeederThread"
    return agent.process[0] if agent.process is not None else ""


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

    util.info = dress(info, original)


def _process_begins():
    """In the new process, before its target runs."""
    try:
        process = sys.modules["multiprocessing.process"].current_process()
        context = sys.modules["multiprocessing.context"]._default_context
        method = getattr(process, "_ullage_method", None) or process._start_method
        if method is None:
            method = (context._actual_context or context._default_context)._name
        agent.process = process._name, method
        target = process._target
        target = getattr(target, "func", target)  # functools.partial
        where = getattr(target, "__module__", None) or type(process).__module__
        name = getattr(target, "__qualname__", None) or type(process).__qualname__
        message = {
            "kind": "process",
            "name": process._name,
            "target": "%s.%s" % ("__main__" if where == "__mp_main__" else where, name),
            "worker": _argument(target, process, "_worker_loop", "worker_id", int),
            "start_method": method,
        }
        if method != "fork":
            _weigh_arguments(target, process, message)
        if name in ("worker", "_process_worker") and where in ("multiprocessing.pool", "concurrent.futures.process"):
            _watch_results(process._args[1])
        finalize = sys.modules["multiprocessing.util"].Finalize
        finalize(None, _at_process_end, exitpriority=1_000_000)
        finalize(None, _after_process_end, exitpriority=-1000)
        agent.send(message)
    except Exception:
        pass


def _at_process_end():
    """First of multiprocessing's finalizers: up to CPython 3.11 they run while the exception is still in
    flight, and the next ones may wait for children for ever."""
    try:
        agent.report("process", sys.exc_info()[1], _name_of("process"))
    except Exception:
        pass


def _after_process_end():
    try:
        agent.say_bye()
    except Exception:
        pass


def _argument(target, process, function, name, kind=None):
    """An argument of a process's target, where that is this function."""
    code = getattr(target, "__code__", None)
    if code is None or code.co_name != function or name not in code.co_varnames:
        return None
    place = code.co_varnames.index(name)
    value = process._args[place] if place < len(process._args) else process._kwargs.get(name)
    return value if kind is None or type(value) is kind else None


def _weigh_arguments(target, process, message):
    """A process that was not forked has its own of everything: all of it is there before its target runs."""
    try:
        weigh = weigher()
        message["anonymous"] = weigh.anonymous()
        dataset = _argument(target, process, "_worker_loop", "dataset")
        holder = _argument(target, process, "_worker_loop", "dataset_holder", list)  # torch 2.14 up
        if holder:
            dataset = holder[0]
        if dataset is not None:
            message["dataset"] = weigh.weigh(dataset)
    except Exception:
        pass


def weigher():
    load("slots")
    return load("weigh")


def _watch_results(queue):
    """A worker of a pool asks its queue of results for the lock after each task: a moment to look at its globals. The
    property is back before the lock is taken, and no frame of ours is below the job's code."""
    try:
        kind, lock, weigh = type(queue), queue._wlock, weigher()
    except Exception:
        return

    def _wlock(self):
        try:
            found = weigh.large_globals()
            if found:
                agent.send({"kind": "holds", "globals": found})
        except Exception:
            pass
        return lock

    queue.__class__ = type(kind.__name__, (kind,), {"_wlock": property(_wlock), "__module__": kind.__module__})


def _watch_items(*described):
    """Watches what collects in a queue: see backlog.py."""
    load("backlog").watch(*described)


def _on_queue(module):
    _watch_items(module.Queue, "_init", "queue", "queue.Queue", lambda self: self.maxsize)


def _on_asyncio_queues(module):
    _watch_items(module.Queue, "_init", "_queue", "asyncio.Queue", lambda self: self._maxsize)


def _on_queues(queues):
    _callers[id(queues.Queue._on_queue_feeder_error.__code__)] = "thread"
    _watch_items(queues.Queue, "_reset", "_buffer", "multiprocessing.Queue", lambda self: self._maxsize)


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
    if hasattr(module, "IMapIterator"):
        _watch_items(module.IMapIterator, "__init__", "_items", "Pool.imap", lambda self: 0)


def _watch_wrapper(kind, left, error):
    """Such an object is made only to carry an exception out of a worker."""
    original = kind.__init__

    def __init__(self, *args, **kwargs):
        try:
            where, name = left(args, kwargs)
            agent.report(where, error(args, kwargs), name)
        except Exception:
            pass
        original(self, *args, **kwargs)

    kind.__init__ = dress(__init__, original)


_inside_told = None  # the facts, once they were told


def _on_torch(module):
    """Told here and not at the end: a killed program has none."""
    _on_heavy_import(module)
    _tell_inside()


def _tell_inside():
    """Of the program itself only: what multiprocessing starts is made of the same. At its end once more, with no more
    than the libraries that it has loaded since."""
    global _inside_told
    process = sys.modules.get("multiprocessing.process")
    current = getattr(process, "_current_process", None)
    child = getattr(current, "_inheriting", False) or getattr(process, "_parent_process", None) is not None
    # Its helpers are programs of one line: from multiprocessing.resource_tracker import main;main(7)
    entries = [getattr(sys.modules.get("__main__"), name, None) for name in ("main", "spawn_main")]
    helper = any(str(getattr(entry, "__module__", "")).startswith("multiprocessing.") for entry in entries)
    if agent.forked or child or helper:
        return
    part = load("facts")
    facts = part.inside() if _inside_told is None else part.loaded_since(_inside_told)
    if facts:
        agent.send({"kind": "inside", "facts": facts})
    _inside_told = {**(_inside_told or {}), **facts}


def _on_dataloader(module):
    # Asked for by `_get_iterator` just before it makes the iterator.
    loader = module.DataLoader
    loader.check_worker_number_rationality = Asked(loader.check_worker_number_rationality, _checks_workers)
    single, several = module._SingleProcessDataLoaderIter, module._MultiProcessingDataLoaderIter
    single._next_data = Asked(single._next_data, _loads_here)
    several._next_data = Asked(several._next_data, lambda _iterator: moment())
    _in("kept", "on_dataloader")(module)
    _fix()


def _fix():
    """`ullage run --fix`: the remedies that are the job's own to apply."""
    asked = os.environ.get("ULLAGE_FIX", "").split(",")
    remedy = "zygote" if "zygote" in asked else "arena"
    if remedy not in asked:
        return
    try:
        import ullage

        ullage.install(method="zygote" if remedy == "zygote" else None)
        agent.send({"kind": "fix", "remedy": remedy})
    except Exception as error:
        agent.send({"kind": "fix", "remedy": remedy, "failed": "%s: %s" % (type(error).__name__, error)})


def _checks_workers(loader):
    if sys._getframe(2).f_code.co_name == "_get_iterator":
        _loader_begins(loader)


def _loads_here(_iterator):
    """A loader without workers is told of by nobody, but what is made of its batches may be kept as any other's."""
    if agent.loader_of != os.getpid():
        weigher()
        agent.loader_of = os.getpid()
    moment()


def _loader_begins(loader):
    _in("training", "forward_no_more")(loader)
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
        "start_method": agent.plain(method),
        "start_method_is_default": context is None,
        "sharing_strategy": agent.sharing_strategy(),
        "batch_size": _count(loader.batch_size),
        "prefetch_factor": _count(loader.prefetch_factor),
        "pin_memory": bool(loader.pin_memory),
        "persistent_workers": bool(loader.persistent_workers),
        "dataset": "%s.%s" % (where, dataset.__qualname__),
        "dataset_len": _count(length),
        "index_list": weigher().index_list(loader),
        "weight": _weight_of(loader.dataset, length),
    }
    agent.loader, agent.loader_of = settings, os.getpid()
    message = {"kind": "loader"}
    message.update(settings)
    agent.send(message)


def _weight_of(dataset, length):
    """Weighed once, not at each epoch."""
    global _weighed
    try:
        if _weighed is None or _weighed[:2] != (id(dataset), length):
            _weighed = id(dataset), length, weigher().weigh(dataset)
        return _weighed[2]
    except Exception:
        return None


def _count(value):
    return value if type(value) is int and value >= 0 else None


_ON_IMPORT = {
    "numpy": _on_heavy_import,
    "threading": _on_threading,
    "traceback": _on_traceback,
    "multiprocessing.util": _on_multiprocessing_util,
    "multiprocessing.queues": _on_queues,
    "queue": _on_queue,
    "asyncio.queues": _on_asyncio_queues,
    "multiprocessing.pool": _on_pool,
    "concurrent.futures.process": _on_pool,
    "torch": _on_torch,
    "torch._dynamo": _in("training", "forward_no_more"),
    "torch._utils": _on_torch_utils,
    "torch.distributed.distributed_c10d": _in("kept", "on_distributed"),
    "torch.multiprocessing.spawn": _on_torch_spawn,
    "torch.nn.modules.module": _in("training", "on_modules"),
    "torch.optim.optimizer": _in("training", "on_optimizer"),
    "torch.utils.data._utils.worker": _in("training", "on_worker"),
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
