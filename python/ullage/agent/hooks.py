"""Where an exception can leave a Python unseen, what a process is, and when there is time to look at its memory: hooks
that wait for a module.

Each is set when its module is imported, none imports anything itself. What stands in the program's way is of C, and all
functions here that it calls run in a thread of the agent's own (python/agent). The surprise: the program's thread waits
meanwhile, whatever lock it holds: so nothing here imports, takes a lock or calls code of the program. What must stand
below the job's own code (the loading of a module) carries the file name that CPython cuts out of tracebacks.
"""

import atexit
import gc
import os
import sys
import time

import _ullage_agent as agent  # put into sys.modules by sitecustomize.py

AGENT_CODE = "<frozen importlib._bootstrap>"  # frames of this name are cut out of tracebacks

FIRST_LOOK_S = 1.0
IN_TIME = -1.0  # for access(): only where a look at memory is due

callers = {}  # id of a code object that prints an exception it swallows -> where that exception left
_load_part = None
_began = 0.0  # by time.monotonic()
_of_heavy = False  # a library was loaded whose facts are worth a message at the end
native = None


def install(load_part):
    """Hooks the modules that are there already, and waits for the others. `load_part` loads one of the
    other files beside this one, when it is needed."""
    global _load_part, _began, native
    _load_part, native = load_part, agent.native
    _began = time.monotonic()
    agent.tell_inside = _tell_inside_at_end
    agent.after_fork_of_hooks = _after_fork
    agent.figures_at_end = _figures_at_end
    native.look_with(_look)
    native.next_look(FIRST_LOOK_S)
    atexit.register(native.next_look, float("inf"))  # the collector runs for the last time when libraries are gone
    gc.callbacks.append(native.on_collection)
    time.sleep = native.stand_in(time.sleep, None, 2)
    for name in list(_ON_IMPORT):
        module = sys.modules.get(name)
        if module is not None:
            imported(module)
    sys.meta_path.insert(0, _Finder)


# --- moments to look at memory --------------------------------------------------------------------------


def _look(light, early):
    """`light`: what came since the last look is no growth of the program's. `early`: a short one."""
    again = load("memory").look(agent.send, light, early)
    kept = sys.modules.get("_ullage_kept")
    if kept is not None and not early:
        try:
            kept.look()
        except Exception:
            pass
    return again


def look_now(*_):
    """Where it was found to be time, in a thread of the agent's own."""
    native.next_look(float("inf"))
    native.next_look(_look(False, False))


def look_if_due(*_):
    if native.is_due():
        look_now()


def load(name):
    part = sys.modules.get("_ullage_" + name)
    if part is None:
        for one in ("_collections", "_tracemalloc", "itertools"):
            _have_builtin(one)
        part = _load_part(name)
    return part


def _have_builtin(name):
    """What the other parts import is there before, and not by the import system: the program may hold its locks."""
    if name not in sys.modules:
        importing = sys.modules["_frozen_importlib"]
        module = importing.module_from_spec(importing.BuiltinImporter.find_spec(name))
        importing.BuiltinImporter.exec_module(module)
        sys.modules.setdefault(name, module)


def objects(kinds=(), most=1, young=False):
    """What the collector lists, without a write to what lies in pages shared with another process: (the process's own,
    at most `most` of the others that are of these types, how many such there are, how many objects in all); None where
    that cannot be told."""
    return native.objects(gc.get_threshold(), 0 if young else -1, kinds, most)


def own_objects(young=False):
    found = objects(young=young)
    return () if found is None else found[0]


def caller():
    """The frame that came by."""
    return sys._current_frames().get(native.caller())


def weigher():
    load("slots")
    return load("weigh")


def _in(part, name):
    """A hook of another file, which is loaded when it is needed."""
    return lambda module: getattr(load(part), name)(module)


def _figures_at_end():
    """Of a process that was there for a while: another pays for nothing."""
    return load("memory").files() if time.monotonic() >= _began + FIRST_LOOK_S else {}


def _after_fork():
    global _began
    _began = time.monotonic()
    for name in ("_ullage_memory", "_ullage_kept", "_ullage_training"):
        part = sys.modules.get(name)
        if part is not None:
            part.after_fork()


def _on_heavy_import(_module):
    """What a library takes for itself is no growth of the program's."""
    global _of_heavy
    _of_heavy = True
    native.next_look(_look(True, False))


# --- exceptions that leave ------------------------------------------------------------------------------


def _on_threading(threading):
    threading.excepthook = agent._stand_in(threading.excepthook, threading, "__excepthook__", _in_thread, 1)


def _in_thread(_handled, arguments, _keywords):
    args = arguments[0]
    agent.report("thread", args.exc_value, getattr(args.thread, "_name", "") or "")


def _on_traceback(traceback):
    # A Process, a queue's feeder and torch's spawn print or store the exception that leaves them by one of
    # these two; in there it is still alive, with its frames.
    traceback.print_exc = native.hook(traceback.print_exc, _printed, 0)
    traceback.format_exc = native.hook(traceback.format_exc, _printed, 0)


def _printed(handled, _arguments, _keywords):
    frame = caller()
    left = callers.get(id(frame.f_code)) if frame is not None else None
    if left is not None:
        agent.report(left, handled, name_of(left))


def name_of(left):
    if left == "thread":
        return "QueueFeederThread"
    return agent.process[0] if agent.process is not None else ""


# --- what this Python is --------------------------------------------------------------------------------

_inside_told = None  # the facts, once they were told


def _on_torch(module):
    """Told here and not at the end: a killed program has none."""
    _on_heavy_import(module)
    _tell_inside()


def _tell_inside_at_end():
    """Of a program that had time to grow, or has the libraries that do: another pays for nothing."""
    heavy = _of_heavy or "multiprocessing.process" in sys.modules
    if _inside_told is not None or heavy or time.monotonic() >= _began + FIRST_LOOK_S:
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
        said["failed"] = "%s: %s" % (type(error).__name__, agent._text(error))
    native.guard(agent.send)(said)


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
    "multiprocessing.util": _in("processes", "on_multiprocessing_util"),
    "multiprocessing.queues": _in("processes", "on_queues"),
    "queue": _in("processes", "on_queue"),
    "asyncio.queues": _in("processes", "on_asyncio_queues"),
    "multiprocessing.pool": _in("processes", "on_pool"),
    "concurrent.futures.process": _in("processes", "on_pool"),
    "torch": _on_torch,
    "torch._dynamo": _in("training", "forward_no_more"),
    "torch._utils": _in("processes", "on_torch_utils"),
    "torch.distributed.distributed_c10d": _in("kept", "on_distributed"),
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
        native.guard(hook)(module)
        if name == "torch.utils.data.dataloader":
            fix()


def _load(loader, module):
    """exec_module of one loader, once, with our hook after it. Its frame is cut out of tracebacks."""
    del loader.exec_module
    loader.exec_module(module)
    imported(module)


def _find_spec(name, path=None, target=None):
    # Only where the import system asks in order to load: importlib.util.find_spec gets what it always got.
    frame = sys._getframe(0).f_back
    frame = None if frame is None else frame.f_back
    if name not in _ON_IMPORT or frame is None or frame.f_code.co_name != "_find_and_load_unlocked":
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

    exec_module.__code__ = exec_module.__code__.replace(co_filename=AGENT_CODE)
    return exec_module


for _one in (imported, _load, _find_spec, _once):
    _one.__code__ = _one.__code__.replace(co_filename=AGENT_CODE)


class _Finder:
    """First in sys.meta_path: finds nothing itself, lets the others find, and is told when it was loaded."""

    find_spec = staticmethod(_find_spec)
