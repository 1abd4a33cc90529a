"""Where an exception can leave a Python unseen, what that Python is, and which modules the other hooks wait for.

Each hook is set when its module is imported, none imports anything itself. What stands in the program's way is of C,
and all functions here that it calls run in a thread of the agent's own (python/agent). The surprise: the program's
thread waits meanwhile, whatever lock it holds: so nothing here imports, takes a lock or calls code of the program. What
must stand below the job's own code (the loading of a module) carries the file name that CPython cuts out of tracebacks.
"""

import os
import sys

import _ullage_agent as agent
import _ullage_common as common
import _ullage_safe_points as safe_points

AGENT_CODE = "<frozen importlib._bootstrap>"  # frames of this name are cut out of tracebacks

_OF_CHILDREN = ("memory", "counts", "failure", "calls")  # where they live for a while; the last may have to be opened
_OF_WORKERS = (*_OF_CHILDREN, "backlog", "weigh")
_of_heavy = False  # a library was loaded whose facts are worth a message at the end


def install():
    """Hooks the modules that are there already, and waits for the others."""
    agent.last_words.append(_tell_inside_at_end)
    agent.last_words.append(_figures_at_end)
    for name in list(_ON_IMPORT):
        module = sys.modules.get(name)
        if module is not None:
            imported(module)
    common.native.before_first_fork(_load_for_children)
    if common.replaces(b"IMPORTS"):
        sys.meta_path.insert(0, _Finder)


def _in(part, name):
    """A hook of another file, which is loaded when it is needed."""
    return lambda module: getattr(common.load(part), name)(module)


def _figures_at_end(figures):
    """Of a process that was there for a while: another pays for nothing."""
    if safe_points.began_long_ago():
        figures.update(safe_points.memory().files())


def _on_heavy_import(_module):
    global _of_heavy
    _of_heavy = True
    common.load("failure")  # a later exception may leave no room for it
    safe_points.sample_after_import()


def _load_for_children():
    """Just before a program of some size forks for the first time, by whatever means: what its children will load, they
    share."""
    _load_all(_OF_CHILDREN)


def _load_all(parts):
    for part in parts:
        try:
            common.load(part)
        except Exception:
            pass  # whoever needs it tries for itself


def _on_fork(_module):
    """Just before multiprocessing forks for the first time: what its workers will load, they share. The other start
    methods import the same module, as a base; where they came first, nothing is shared."""
    if "multiprocessing.popen_spawn_posix" not in sys.modules and "multiprocessing.popen_forkserver" not in sys.modules:
        _load_all(_OF_WORKERS)


def _on_tracemalloc(_module):
    sites = sys.modules.get("_ullage_sites")
    if sites is not None:
        sites.give_way()


# --- exceptions that leave ------------------------------------------------------------------------------


def _on_threading(threading):
    if not common.replaces(b"EXCEPTHOOK"):
        return
    threading.excepthook = agent.stand_in(threading.excepthook, threading, "__excepthook__", _in_thread, 1)


def _in_thread(_handled, arguments, _keywords):
    args = arguments[0]
    if type(args) is common.names("threading").get("ExceptHookArgs"):
        name = common.load("kinds").attribute(args.thread, "_name") if args.thread is not None else None
        agent.report("thread", args.exc_value, common.plain(name) or "")


def _on_traceback(traceback):
    # A Process, a queue's feeder and torch's spawn print or store the exception that leaves them by one of
    # these two; in there it is still alive, with its frames.
    if common.replaces(b"TRACEBACK"):
        traceback.print_exc = common.native.hook(traceback.print_exc, _printed, 0)
        traceback.format_exc = common.native.hook(traceback.format_exc, _printed, 0)


def _printed(handled, _arguments, _keywords):
    frame = common.caller()
    left = agent.callers.get(id(frame.f_code)) if frame is not None else None
    if left is not None:
        agent.report(left, handled, agent.name_of(left))


# --- what this Python is --------------------------------------------------------------------------------

_inside_told = None  # the facts, once they were told


def _on_torch(module):
    """Told here and not at the end: a killed program has none."""
    _on_heavy_import(module)
    _tell_inside()


def _tell_inside_at_end(_figures):
    """Of a program that had time to grow, or has the libraries that do: another pays for nothing."""
    heavy = _of_heavy or "multiprocessing.process" in sys.modules
    if _inside_told is not None or heavy or safe_points.began_long_ago():
        _tell_inside()


def _tell_inside():
    """Of the program itself only: what multiprocessing starts is made of the same. At its end once more, with no more
    than the libraries that it has loaded since."""
    global _inside_told
    process, main = common.names("multiprocessing.process"), common.names("__main__")
    current = process.get("_current_process")
    child = current is not None and common.load("kinds").attribute(current, "_inheriting") is True
    child = child or process.get("_parent_process") is not None
    # Its helpers are programs of one line: from multiprocessing.resource_tracker import main;main(7)
    entries = [main.get(name) for name in ("main", "spawn_main")]
    entries = [common.plain(entry.__module__) for entry in entries if type(entry) is type(_tell_inside)]
    helper = any([(module or "").startswith("multiprocessing.") for module in entries])
    if agent.forked or child or helper:
        return
    part = common.load("facts")
    facts = part.inside() if _inside_told is None else part.loaded_since(_inside_told)
    if facts:
        agent.send({"kind": "inside", "facts": facts})
    _inside_told = {**(_inside_told or {}), **facts}


# --- remedies -------------------------------------------------------------------------------------------


def fix():
    """`ullage run --fix`: the remedies that are the job's own to apply. In the program's thread, since it imports: what
    a signal handler raises meanwhile leaves as it came."""
    asked = os.environ.get("ULLAGE_FIX", "").split(",")
    remedy = "zygote" if "zygote" in asked else "arena"
    if remedy not in asked:
        return
    said = {"kind": "fix", "remedy": remedy}
    try:
        import ullage

        ullage.install(method="zygote" if remedy == "zygote" else None)
    except Exception as error:
        if not _is_ours(error):
            raise
        said["failed"] = "%s: %s" % (type(error).__name__, common.load("failure").text(error))
    common.native.guard(agent.send)(said)


def _is_ours(error):
    """Raised by our package or by its import, and not by a handler of a signal in the midst of it."""
    traceback = error.__traceback__
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    code = traceback.tb_frame.f_code
    return "/ullage/" in code.co_filename or "importlib" in code.co_filename or code is fix.__code__


# --- imports --------------------------------------------------------------------------------------------

_ON_IMPORT = {
    "numpy": _on_heavy_import,
    "threading": _on_threading,
    "traceback": _on_traceback,
    "tracemalloc": _on_tracemalloc,
    "multiprocessing.reduction": _in("processes", "on_reduction"),
    "multiprocessing.util": _in("processes", "on_multiprocessing_util"),
    "multiprocessing.popen_fork": _on_fork,
    "multiprocessing.queues": _in("processes", "on_queues"),
    "queue": _in("processes", "on_queue"),
    "asyncio.queues": _in("processes", "on_asyncio_queues"),
    "multiprocessing.pool": _in("processes", "on_pool"),
    "concurrent.futures.process": _in("processes", "on_pool"),
    "torch": _on_torch,
    "torch._dynamo": _in("training", "forward_no_more"),
    "torch._utils": _in("processes", "on_torch_utils"),
    "torch.distributed.distributed_c10d": _in("torch_counts", "on_distributed"),
    "torch.multiprocessing.spawn": _in("processes", "on_torch_spawn"),
    "torch.nn.modules.module": _in("training", "on_modules"),
    "torch.optim.optimizer": _in("training", "on_optimizer"),
    "torch.utils.data._utils.worker": _in("training", "on_worker"),
    "torch.utils.data.dataloader": _in("loaders", "on_dataloader"),
}


def imported(module):
    name = module.__name__
    hook = _ON_IMPORT.pop(name, None)
    if hook is not None:
        common.native.guard(hook)(module)
        if name == "torch.utils.data.dataloader":
            fix()


def _load(loader, module):
    """exec_module of one loader, once, with our hook after it. Its frame is cut out of tracebacks."""
    del loader.exec_module
    loader.exec_module(module)
    imported(module)


def _find_spec(name, path=None, target=None):
    if name not in _ON_IMPORT or common.native.is_audited():
        return None
    # Only where the import system asks in order to load: importlib.util.find_spec gets what it always got.
    frame = sys._getframe(0).f_back
    frame = None if frame is None else frame.f_back
    if frame is None or frame.f_code.co_name != "_find_and_load_unlocked":
        return None
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        if finder is _Finder or find is None:
            continue
        spec = find(name, path, target)
        if spec is None:
            continue
        loader = spec.loader
        # A loader with a dict of its own takes the attribute, as those of CPython do.
        if hasattr(loader, "exec_module") and "exec_module" not in getattr(loader, "__dict__", {"exec_module": 0}):
            loader.exec_module = _once(loader)
        return spec
    return None


def _once(loader):
    def exec_module(module):
        _load(loader, module)

    if _CUT_OUT:
        exec_module.__code__ = exec_module.__code__.replace(co_filename=AGENT_CODE)
    return exec_module


_CUT_OUT = common.replaces(b"FRAMES")
for _one in (imported, _load, _find_spec, _once) if _CUT_OUT else ():
    _one.__code__ = _one.__code__.replace(co_filename=AGENT_CODE)


class _Finder:
    """First in sys.meta_path: finds nothing itself, lets the others find, and is told when it was loaded."""

    find_spec = staticmethod(_find_spec)
