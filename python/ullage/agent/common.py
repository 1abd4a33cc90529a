"""What every part of the agent has in common: python/agent, the share of the time that it may take, what of the program
it may replace, and what begins anew in a forked child.

The lowest part: it imports no other. Parts that are needed late and rarely are had by `load`, so that a start pays for
nothing of them.
"""

import gc
import posix
import sys
import time

BUDGET = 0.005  # of the time: what looks may cost, each kind of them; what one cost decides when the next may come

_MODULE = type(sys)
_NAMES = _MODULE.__dict__["__dict__"].__get__  # as CPython itself reads it: no code of a module's type runs

monotonic, thread_time = time.monotonic, time.thread_time  # as they are now: a test's mock in their place is not for us

native = None  # python/agent, where this Python can load it
in_child = []  # functions by which parts that keep figures begin anew in a forked child
_load_part = None


def begin(load_part):
    """`load_part` runs one of the other files beside this one, and before it those that it imports."""
    global _load_part
    _load_part = load_part


def use(library):
    global native
    native = library


def replaces(what):
    """Whether this may be replaced in the program: `ULLAGE_AGENT_NO_SLEEP=1` leaves `time.sleep` as it is. The others,
    and what is lost by each: docs/reference/agent.md."""
    return posix.environ.get(b"ULLAGE_AGENT_NO_" + what) != b"1"


def end_of_tracing_may_crash(version):
    """Beside threads of C that take the interpreter's lock for the first time, as the agent's are (gh-128679)."""
    return version < (3, 12, 9) or (3, 13) <= version < (3, 13, 2)


def names(module):
    """What the module of this name holds. Nothing where it is not there, or something else is in its place."""
    found = sys.modules.get(module)
    return _NAMES(found) if issubclass(type(found), _MODULE) else {}


def plain(value):
    """Text of at most so many characters; None of what is none."""
    return str.__str__(value)[:200] if issubclass(type(value), str) else None


def load(name):
    """A part, by the name of its file."""
    part = sys.modules.get("_ullage_" + name)
    if part is None:
        if native is not None:
            native.has_figures()
        for one in ("_collections", "_functools", "_tracemalloc", "_weakref", "itertools"):
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


def standing(
    kinds,
    most,
    most_shared=1,
    containers=(),
    long=sys.maxsize,
    most_long=1,
    apart=(),
    most_apart=1,
    ends=False,
):
    """What a census looks at: (the process's own objects of these types, of more than `most` some, how many there are,
    some in pages shared with another process, how many there are, the longest containers, how many objects in all,
    those of the types `apart`, how many there are); None where that cannot be told, and of a process with so many
    objects that it would be held up, if it does not end."""
    containers, most_objects = (containers, long, most_long), sys.maxsize if ends else MANY_OBJECTS
    return native.standing(gc.get_threshold(), kinds, most, most_shared, *containers, apart, most_apart, most_objects)


MANY_OBJECTS = 1_000_000


def newest(since, most):
    """(at most so many of the process's own objects that the collector has not looked at yet, from the middle of those
    that came after the first `since`; how many there are; whether that is all of them)."""
    found = native.newest(gc.get_threshold(), since, most, max(0, gc.get_count()[0] - since))
    return ([], 0, True) if found is None else found


OPTIMIZED = 1  # CO_OPTIMIZED: its locals are no dict of the program's, as those of a module or class are
_MINOR, _COLLECTOR = sys.version_info[1], (gc.isenabled, gc.disable, gc.enable)


def locals_of(frame):
    """Names and values of a running function's locals, without a trace (locals.rs): up to 3.12 `f_locals` leaves a
    dict, from which CPython sets the variables again where a tracer or profiler runs."""
    if not frame.f_code.co_flags & OPTIMIZED:
        return ()
    if sys.version_info >= (3, 13):
        return list(frame.f_locals.items())
    return native is not None and native.locals(frame, _MINOR, *_COLLECTOR) or ()


def caller():
    """The frame that came by."""
    return native.frames().get(native.caller())
