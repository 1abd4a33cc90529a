"""What is a process, where does an exception leave it, and what collects in its queues: hooks of multiprocessing, of
queues and of torch's helpers. Loaded with the first module that one of them waits for.

The surprise: as all of the agent's Python code (python/agent) it runs while the program waits.
"""

import gc
import sys
from _functools import partial

import _ullage_agent as agent
import _ullage_common as common
import _ullage_kinds as types


def on_multiprocessing_util(util):
    process = sys.modules.get("multiprocessing.process")
    agent.callers[id(process.BaseProcess._bootstrap.__code__)] = "process"
    if not common.replaces(b"PROCESSES"):
        return
    # The last call of `_bootstrap` before it runs the target, under every start method; register_after_fork
    # is left out under spawn.
    util.info = common.native.hook(util.info, _informed, 0)


def _informed(_handled, arguments, _keywords):
    frame = common.caller()
    bootstrap = frame is not None and agent.callers.get(id(frame.f_code)) == "process"
    if bootstrap and type(arguments[0]) is str and "calling self.run" in arguments[0]:
        _process_begins()


def on_reduction(module):
    """A process that waits for messages comes by with each of them: the parent of a pool or an executor, a manager's
    server, the reader of a queue. Each asks the class for its function, which is handed out as it is."""
    pickler = module.ForkingPickler
    if common.replaces(b"MESSAGES"):
        pickler.loads = common.native.plain(pickler.loads)


def _process_begins():
    """In the new process, before its target runs."""
    process = common.names("multiprocessing.process")["_current_process"]
    context = common.names("multiprocessing.context")["_default_context"]
    method = common.plain(types.attribute(process, "_ullage_method") or types.attribute(process, "_start_method"))
    if method is None:
        method = (context._actual_context or context._default_context)._name
    agent.began_as(common.plain(types.attribute(process, "_name")) or "", method)
    target = _function(types.attribute(process, "_target"))
    where, name = _named(target, process)
    message = {
        "kind": "process",
        "name": agent.name_of("process"),
        "target": "%s.%s" % ("__main__" if where == "__mp_main__" else where, name),
        "worker": _argument(target, process, "_worker_loop", "worker_id", int),
        "start_method": method,
    }
    of_pool = name in ("worker", "_process_worker") and where in ("multiprocessing.pool", "concurrent.futures.process")
    if method != "fork":
        _weigh_arguments(target, process, message, of_pool)
    if of_pool and common.replaces(b"POOLS"):
        _watch_results(types.attribute(process, "_args")[1])
    finalize = sys.modules["multiprocessing.util"].Finalize
    finalize(None, common.native.hook(gc.isenabled, _at_process_end, 0), exitpriority=1_000_000)
    finalize(None, common.native.guard(agent.say_bye), exitpriority=-1000)
    agent.send(message)


def _at_process_end(handled, _arguments, _keywords):
    """First of multiprocessing's finalizers: up to CPython 3.11 they run while the exception is still in
    flight, and the next ones may wait for children for ever."""
    agent.report("process", handled, agent.name_of("process"))


def _function(target):
    """What is called in the end."""
    for _ in range(4):
        if issubclass(type(target), partial):
            target = partial.func.__get__(target)
        elif type(target) is types.MethodType:
            target = target.__func__
    return target


def _named(target, process):
    """(module, name) of a process's target; of its type, or the process's, where it is no function."""
    kind = type(process) if target is None else target if issubclass(type(target), type) else type(target)
    if type(target) is types.FunctionType or type(target) is types.BuiltinFunctionType:
        where, name = target.__module__, target.__qualname__
        if type(where) is str and type(name) is str:
            return where, name
    return types.module_of(kind), types.qualified_name(kind)


def _argument(target, process, function, name, kind=None):
    """An argument of a process's target, where that is this function."""
    if type(target) is not types.FunctionType:
        return None
    code, arguments = target.__code__, types.attribute(process, "_args")
    if code.co_name != function or name not in code.co_varnames or type(arguments) is not tuple:
        return None
    place = code.co_varnames.index(name)
    value = arguments[place] if place < len(arguments) else dict.get(types.attribute(process, "_kwargs"), name)
    return value if kind is None or type(value) is kind else None


def _weigh_arguments(target, process, message, of_pool):
    """A process that was not forked has its own of everything: all of it is there before its target runs. What a
    pool's worker is given is its queues, and what its globals come from."""
    try:
        weigh = common.load("weigh")
        message["anonymous"] = weigh.anonymous()
        dataset = _argument(target, process, "_worker_loop", "dataset")
        holder = _argument(target, process, "_worker_loop", "dataset_holder", list)  # torch 2.14 up
        if holder:
            dataset = holder[0]
        if dataset is not None:
            message["dataset"] = weigh.weigh(dataset)
        elif not of_pool:
            # A class of the program's own holds what it was given in attributes; BaseProcess's are its target and args.
            bound = types.attribute(process, "_target")
            of = bound.__self__ if type(bound) is types.MethodType else None
            message["arguments"] = weigh.weigh((process, of), closures=True)
    except Exception:
        pass


def _watch_results(queue):
    """A worker of a pool asks its queue of results for the lock after each task: a moment to look at its globals."""
    kind = type(queue)
    if type(kind) is not type or types.module_of(kind) != "multiprocessing.queues":
        return
    lock = common.native.access(queue._wlock, _large_globals, 0.0)
    del queue._wlock  # an object's own attribute comes before what its class hands out
    queue.__class__ = type(kind.__name__, (kind,), {"_wlock": lock, "__module__": kind.__module__})


def _large_globals(_queue):
    found = common.load("weigh").large_globals()
    if found:
        agent.send({"kind": "holds", "globals": found})


def _watch_items(*described):
    """Watches what collects in a queue: see backlog.py."""
    if common.replaces(b"QUEUES"):
        common.load("backlog").watch(*described)


def on_queue(module):
    _watch_items(module.Queue, "_init", "queue", "queue.Queue", "maxsize")


def on_asyncio_queues(module):
    _watch_items(module.Queue, "_init", "_queue", "asyncio.Queue", "_maxsize")


def on_queues(queues):
    agent.callers[id(queues.Queue._on_queue_feeder_error.__code__)] = "thread"
    _watch_items(queues.Queue, "_reset", "_buffer", "multiprocessing.Queue", "_maxsize")


def on_torch_spawn(module):
    agent.callers[id(module._wrap.__code__)] = "process"


def on_torch_utils(module):
    def carried(handled, arguments, keywords):
        keywords = keywords or {}
        where = keywords.get("where", arguments[2] if len(arguments) > 2 else "")
        info = keywords.get("exc_info", arguments[1] if len(arguments) > 1 else None)
        left = "loader-worker" if "DataLoader worker" in (common.plain(where) or "") else "thread"
        agent.report(left, info[1] if type(info) is tuple else handled, agent.name_of("process"))

    _watch_wrapper(module.ExceptionWrapper, carried)


def on_pool(module):
    def carried(_handled, arguments, _keywords):
        agent.report("executor-worker", arguments[1], agent.name_of("process"))

    for name in ("ExceptionWithTraceback", "_ExceptionWithTraceback"):
        if hasattr(module, name):
            _watch_wrapper(getattr(module, name), carried)
    if hasattr(module, "IMapIterator"):
        _watch_items(module.IMapIterator, "__init__", "_items", "Pool.imap")


def _watch_wrapper(kind, carried):
    """Such an object is made only to carry an exception out of a worker."""
    if not common.replaces(b"CARRIERS"):
        return
    kind.__init__ = common.native.hook(kind.__init__, carried, 0)
