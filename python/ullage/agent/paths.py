"""By which name can the program reach an object? From the names that a person reads in the source, the locals of
running functions and the globals of the program's own modules, down through containers and instances, nearest first.

No code of the program runs: types are told by type() and compared by `is` or `id` (kinds.py), parts come from the
built-in types' own functions and from the collector (gc.get_referents). The surprise: up to Python 3.12 a frame keeps
the dict that `f_locals` makes, and the program's variables may be set from it. So it is put back to what it was
(python/agent, locals.rs).
"""

import gc
import sys
from _collections import OrderedDict, defaultdict, deque
from _functools import _lru_cache_wrapper as CACHE
from itertools import chain as joined
from itertools import islice

import _ullage_common as common
import _ullage_kinds as types
import _ullage_modules as modules
import _ullage_slots as slots
import _ullage_steps as steps_of
from _ullage_common import thread_time

DICTS = (dict, OrderedDict, defaultdict)
LISTS = (list, tuple)
OTHERS = (set, frozenset, deque)
CONTAINERS = DICTS + LISTS + OTHERS
OF_DICTS, OF_LISTS, OF_CONTAINERS = types.ids(*DICTS), types.ids(*LISTS), types.ids(*CONTAINERS)
# What stands still in the midst of its function, with the names of that function.
SUSPENDED = {
    id(types.GeneratorType): "gi_",
    id(types.CoroutineType): "cr_",
    id(types.AsyncGeneratorType): "ag_",
}
FEW = 24  # elements of a container that are gone into: of a larger one, the last and some others
MANY = 32  # objects to which one of C refers that is a container of its own kind, such as an XML element
MOST_PARTS = 200  # that are gone into
MOST_SPOTS = 20_000
MOST_FRAMES = 100
MOST_NAMES = 2000  # of a module
MOST_STEPS = 40  # of a name: a module inside a module of torch is four further
LONG_NAME = 240  # characters: it is not made longer
INNERMOST = 2  # functions of the program whose names are of a moment
PASSING = 0.4  # share of the time for what only they lead to

_PASSED_BY = types.ids(
    type(None), bool, int, float, complex, str, range, slice, type(Ellipsis),
    types.ModuleType, types.CodeType, types.FrameType, types.TracebackType, types.BuiltinFunctionType,
    types.GetSetDescriptorType, types.MemberDescriptorType, types.MappingProxyType, property,
)  # fmt: skip


class Array:
    """An array of numpy's that owns its elements, in its place: while another one refers to an array, the program could
    not `resize` it."""

    __slots__ = ("id", "size")

    def __init__(self, id, size):
        self.id, self.size = id, size


def _stand_in(part, array):
    if type(part) is not array or array.base.__get__(part) is not None or array.dtype.__get__(part).hasobject:
        return part
    return Array(id(part), array.nbytes.__get__(part))


def _is(value, held):
    return value is held or type(held) is Array and id(value) == held.id


def type_of(value):
    """Of what it stands for."""
    return common.names("numpy").get("ndarray") if type(value) is Array else type(value)


class Root:
    """A name: of a local of a running function, or of a module's global."""

    __slots__ = ("name", "place", "code", "module")

    def __init__(self, name, place, code, module):
        self.name, self.place, self.code, self.module = name, place, code, module


def walk(until, many=None, seen=None, suspended=None, outermost=False, most=MOST_SPOTS):
    """Spots, nearest first: (object, spot of what holds it, or its Root). `many` gets the ids of objects of C that
    refer to many others. `suspended`: only what these functions lead to and is not in `seen`. `outermost`: first from
    the names that stay the same longest, for most of the time: what a name of a moment leads to as well, such as the
    newest of a chain, is theirs at each look."""
    seen, count = set() if seen is None else seen, 0
    every, limits = (_locals(True), _globals(), _locals(False)), [(until, most)] * 3
    if outermost:
        lasting, passing = _by_age()
        others = joined(_locals(True, passing), _locals(False, lasting + passing))
        every = joined(_locals(True, lasting), _globals()), others
        limits[0] = until - PASSING * max(0.0, until - thread_time()), int((1 - PASSING) * most)
    array = common.names("numpy").get("ndarray", Array)
    if suspended is not None:
        seen.difference_update(map(id, suspended))  # what they lead to may not have been reached
        every = _suspended(suspended, True), _suspended(suspended, False)
    for roots, (limit, most) in zip(every, limits):
        todo = deque([(_stand_in(value, array), root) for value, root in roots])
        while todo:
            spot = todo.popleft()
            value = spot[0]
            key = value.id if type(value) is Array else id(value)
            if key in seen:
                continue
            seen.add(key)
            count += 1
            if count > most or count % 64 == 0 and thread_time() > limit:
                break
            yield spot
            for part in parts(value, many):
                if id(type(part)) not in _PASSED_BY:
                    todo.append((_stand_in(part, array), spot))
            part = None


_CLOSED = ("numpy", "threading", "weakref")  # libraries whose objects lead nowhere, or everywhere


def parts(value, many=None):
    """What an object refers to, as far as it is worth a look."""
    kind = type(value)
    if id(kind) in OF_CONTAINERS:
        # One that lies as it was at the fork has not grown, and to read its elements would copy their pages.
        if len(value) > FEW and not common.native.is_own(value):
            return ()
        return some(value, kind, FEW)
    if id(kind) in SUSPENDED:
        found = gc.get_referents(value)
        for one in found[:]:
            if type(one) is types.FrameType:  # up to CPython 3.10 what it holds is the frame's
                found += gc.get_referents(one)
        # A local that a function inside uses too is the function's own all the same.
        found += [part for one in found if type(one) is types.CellType for part in gc.get_referents(one)]
        return [part for part in found if not issubclass(type(part), type) and not is_globals(part)]
    if kind is types.FunctionType:
        found = []
        for cell in value.__closure__ or ():
            try:
                found.append(cell.cell_contents)
            except ValueError:
                pass
        found.extend(value.__defaults__ or ())
        return found
    if issubclass(kind, type):
        is_own = modules.is_program(sys.modules.get(types.module_of(value)))
        return list(types.namespace(value).values()) if is_own else ()
    module = types.module_of(kind)
    # Of what finalizers are registered with, their registry is all that refers to them and to their arguments.
    if not gc.is_tracked(value) or module in _CLOSED and types.qualified_name(kind) != "finalize._Info":
        return ()
    if kind is CACHE:  # of one with a bound, the dict holds what the collector does not see into
        return [part for part in gc.get_referents(value) if type(part) is dict]
    # An instance's dict may not have been made yet: then its values come by themselves.
    number, found = common.native.referents(value, MOST_PARTS)
    if many is not None and number >= MANY and types.attributes_of(value) is None:
        many.add(id(value))
    return [part for part in found if not issubclass(type(part), type) and not is_globals(part)]


def some(value, kind, most):
    """All elements of a small container; of a larger one the last half of so many, and others evenly spread."""
    try:
        length = len(value)
        if id(kind) in OF_LISTS:
            if length <= most:
                return gc.get_referents(value)  # passes by slots without an object
            if not slots.complete(value):
                return ()
            half = most // 2
            return [value[number * (length - half) // half] for number in range(half)] + list(value[-half:])
        if id(kind) in OF_DICTS:
            values = dict.values(value)  # as in _key
            if length <= most:
                return list(values)
            return list(islice(values, most // 2)) + list(islice(reversed(values), most // 2))
        return list(islice(value, most))
    except (RuntimeError, IndexError, TypeError):  # another thread changed it
        return ()


def path(spot):
    """(name, root, owner, functions): `model.cache`, what it begins with, the class whose attribute it is, functions on
    the way. A local of a suspended generator goes by its own name in that function, not by that of the generator."""
    chain = []
    while type(spot[1]) is tuple:
        chain.append(spot[0])
        spot = spot[1]
    chain.append(spot[0])
    chain.reverse()
    root = spot[1]
    name, owner, functions = root.name, "", []
    for number in range(1, min(len(chain), MOST_STEPS)):
        if len(name) > LONG_NAME:
            break
        holder, held = chain[number - 1], chain[number]
        kind = type(holder)
        if kind is types.FunctionType:
            functions.append(holder)
        if id(kind) in SUSPENDED:
            local = _local(holder, held)
            if local is not None:
                name, root, owner = local.name, local, ""
            continue
        if id(kind) in OF_DICTS and number >= 2 and _attributes_of(chain[number - 2]) is holder:
            step, kind = "." + _key(holder, held), type(chain[number - 2])
        else:
            step = _step(holder, held, kind)
        if step.startswith(".") and step != ".":
            owner = types.type_name(holder) if issubclass(kind, type) else _class(kind)
        name += step if step != "." else ""
    if type(chain[-1]) is types.FunctionType:
        functions.append(chain[-1])
    return name, root, owner, functions


def _class(kind):
    """With the class of `logging` that the program derived it from."""
    for base in types.mro(kind)[1:]:
        if types.module_of(base).partition(".")[0] == "logging":
            return "%s(%s)" % (types.type_name(kind), types.type_name(base))
    return types.type_name(kind)


def name(spot):
    """With the function whose local it begins with, which tells it from one of the same name."""
    name, root, _, _ = path(spot)
    return "%s in %s" % (name, root.code.co_name if root.code is not None else "")


def _local(suspended, held):
    """The name that a suspended function has for an object, as a Root; None where it has none."""
    begins = SUSPENDED[id(type(suspended))]
    frame = getattr(suspended, begins + "frame")
    if frame is None or getattr(suspended, begins + "running"):
        return None
    for name, value in common.locals_of(frame):
        if _is(value, held) and name[:1] != ".":
            return _root(name, frame)
    return None


def _step(holder, held, kind):
    if id(kind) in OF_DICTS:
        if len(holder) > FEW:
            return "[...]"
        key = _key(holder, held)
        return "[%r]" % key if key else "[...]"
    if id(kind) in OF_CONTAINERS:
        return "[...]"
    if kind is types.FunctionType:
        for name, cell in zip(holder.__code__.co_freevars, holder.__closure__ or ()):
            try:
                if _is(cell.cell_contents, held):
                    return ", closure variable %s of %s()" % (name, holder.__qualname__)
            except ValueError:
                pass
        return ", a default of %s()" % holder.__qualname__
    if kind is CACHE:
        return ""
    names = types.namespace(holder) if issubclass(kind, type) else _attributes_of(holder)
    if names is held:
        return "."
    key = _key(names, held) if names is not None else ""
    return "." + key if key else ""


def _key(names, held):
    # Not an OrderedDict's own, which look each value up, by the hash of its key.
    for key, value in list(names.items() if type(names) is types.MappingProxyType else dict.items(names)):
        if _is(value, held) and type(key) is str:
            return key[:60]
    return ""


def is_named(container, held):
    """It is a dict, of attributes or of few entries, and has a text as key for what it holds."""
    return id(type(container)) in OF_DICTS and len(container) <= MOST_PARTS and _key(container, held) != ""


def _attributes_of(value):
    kind = type(value)
    if id(kind) in OF_CONTAINERS or id(kind) in _PASSED_BY or issubclass(kind, type):
        return None
    return types.attributes_of(value)


def is_of_attributes(spot):
    """A dict of an instance's attributes."""
    return type(spot[1]) is tuple and type(spot[0]) is dict and _attributes_of(spot[1][0]) is spot[0]


def hooks(spots):
    """Ids of the code of the functions that are hooks of a model."""
    found = set()
    for value, parent in spots:
        if type(value) is not OrderedDict or not value or type(parent) is not tuple:
            continue
        if _step(parent[0], value, type(parent[0])).endswith(("_hooks", "_hooks']")):
            for hook in some(value, OrderedDict, FEW):
                hook = getattr(hook, "__func__", None) if type(hook) is types.MethodType else hook
                if type(hook) is types.FunctionType:
                    found.add(id(hook.__code__))
    return found


def is_globals(value):
    """They begin so. Not looked up: a key of the program's with the same hash would be compared."""
    if type(value) is not dict:
        return False
    first = list(islice(value, 8))
    return all([type(key) is str for key in first]) and "__name__" in first and "__spec__" in first


# --- names ----------------------------------------------------------------------------------------------


def names_of(value):
    """Of a module of the program's own that is not its main one: it may have been loaded for each request. Of a class
    that its module does not know by its name: it was made while the program ran."""
    if issubclass(type(value), type):
        name, module = types.qualified_name(value), types.module_of(value)
        if type(name) is not str or "." in name and "<locals>" not in name or module == "builtins":
            return None
        names = gc.get_referents(types.namespace(value))[0]  # no copy, which would ask each name for its hash
        is_known = dict.get(common.names(module), name) is value
        return names if type(names) is dict and not is_known and len(names) <= MOST_NAMES else None
    if type(value) is not types.ModuleType or not modules.is_program(value):
        return None
    names = value.__dict__
    is_main = modules.name_in(names) in ("__main__", "__mp_main__")
    return names if not is_main and len(names) <= MOST_NAMES else None


def frames(innermost=None):
    """Running functions of all threads, or of these, innermost first, without ours."""
    found = []
    for frame in list(common.native.frames().values()) if innermost is None else innermost:
        count = 0
        while frame is not None and count < MOST_FRAMES:
            if not modules.name_in(frame.f_globals).startswith("_" + modules.OURS):
                found.append(frame)
            frame = frame.f_back
            count += 1
    return found


def _root(name, frame):
    code = frame.f_code
    place = "%s(), %s:%d" % (code.co_name, code.co_filename.rpartition("/")[2], frame.f_lineno or 0)
    return Root(name, place, code, modules.name_in(frame.f_globals))


def _by_age():
    """(running functions whose names stay, those of a moment), the outermost first. Of a thread's own program the
    innermost two come and go."""
    lasting, passing = [], []
    for here in [frames([innermost]) for innermost in list(common.native.frames().values())]:
        own = 0
        for frame in here:
            own += modules.is_program_file(frame.f_code.co_filename)
            (passing if own <= INNERMOST and frame is not here[-1] else lasting).append(frame)
    return lasting[::-1], passing[::-1]


def _locals(of_program, running=None):
    iterators = []
    for frame in frames() if running is None else running:
        code = frame.f_code
        if modules.is_program_file(code.co_filename) is not of_program:
            continue
        for name, value in common.locals_of(frame):
            if name[:1] == ".":  # of a comprehension: no name of the program's, and not the first to be gone along
                iterators.append((value, _root(name, frame)))
            elif id(type(value)) not in _PASSED_BY and name[:2] != "__":
                yield value, _root(name, frame)
    yield from iterators


def _suspended(functions, of_program):
    """Generators and coroutines, of which no name may lead to what they hold: a loop holds its iterator without one."""
    for function in functions:
        begins = SUSPENDED[id(type(function))]
        frame = getattr(function, begins + "frame")
        if frame is None or getattr(function, begins + "running"):
            continue
        if modules.is_program_file(frame.f_code.co_filename) is of_program:
            root = _root(frame.f_code.co_name + "()", frame)
            yield function, root


def _globals():
    done = set()
    for _, module in modules.of_program():
        names = module.__dict__
        if id(names) in done:
            continue
        done.add(id(names))
        prefix = modules.name_in(names)
        for name, value in list(names.items()):
            if type(name) is str and name[:2] != "__" and id(type(value)) not in _PASSED_BY:
                yield value, Root("%s.%s" % (prefix, name), "", None, prefix)


# --- lines ----------------------------------------------------------------------------------------------

_ADDERS = frozenset(("append", "appendleft", "extend", "add", "update", "setdefault", "insert"))
_CONSTANTS = types.ids(
    type(None), bool, int, float, complex, str, bytes, type(Ellipsis), tuple, frozenset, slice, types.CodeType
)
MOST_CODES = 150
LONGEST = 40_000  # bytes of code that are taken apart: some 20 ms
_ENDS = ("STORE_", "POP_", "RETURN_", "JUMP_")  # of a statement
FAR = 80  # steps of byte code that one statement may take


def line(spot, until):
    """(`train.py:31`, code): where the program adds to it, from the byte code of functions near; ("", None) where none
    does."""
    best = None
    for code, last in codes_with(spot):
        if thread_time() >= until:
            break
        if len(code.co_code) > LONGEST or not is_plain(code):
            continue
        found = _adds(code, last)
        if found is not None and (best is None or found[0] < best[0]):
            best = found[0], "%s:%d" % (code.co_filename.rpartition("/")[2], found[1]), code
            if best[0] == 0:
                break
    return best[1:] if best else ("", None)


def is_plain(code):
    """Its constants are what a compiler makes, and none that the program put in."""
    return all([id(type(one)) in _CONSTANTS for one in code.co_consts])


def codes_with(spot):
    """(code, the last name of the spot): code of the program that has this name, of functions on the way to the spot,
    of running ones, of its class and of its module, with those inside."""
    name, root, owner, functions = path(spot)
    words = [word for word in name.replace("[", ".[").replace(",", ".").split(".") if word and word[0] != "["]
    last = words[-1].split(" of ")[0].split(" ")[-1] if words else ""
    codes = [function.__code__ for function in functions]
    if root.code is not None:
        codes.append(root.code)
    codes += [frame.f_code for frame in frames() if modules.is_program_file(frame.f_code.co_filename)]
    module, _, kind = owner.rpartition(".")
    value = common.names(module).get(kind)
    if issubclass(type(value), type):
        codes += _codes(types.namespace(value))
    codes += _codes(common.names(root.module or module))
    done = set()
    while codes and len(done) < MOST_CODES:
        code = codes.pop(0)
        if id(code) in done:
            continue
        done.add(id(code))
        codes += [one for one in code.co_consts if type(one) is types.CodeType]
        if last in code.co_names or last in code.co_varnames + code.co_cellvars + code.co_freevars:
            yield code, last


def _codes(names):
    found = []
    for value in list(names.values()):
        value = value.__func__ if type(value) is staticmethod or type(value) is classmethod else value
        if type(value) is types.FunctionType and modules.is_program_file(value.__code__.co_filename):
            found.append(value.__code__)
    return found


def _adds(code, name):
    """(how sure, line) of the first place of a code object that makes `name` grow: 0 a call that adds, 1 an item that
    is set, 2 a value computed from itself."""
    steps, best = [(step.opname, step.argval, step.line) for step in steps_of.of(code)], None
    for place, (what, argument, number) in enumerate(steps):
        if not what.startswith("LOAD_") or what == "LOAD_CONST":
            continue
        if argument != name and (type(argument) is not tuple or name not in argument):
            continue
        near = steps[place + 1 : place + 8]
        if near and near[0][0] in ("LOAD_ATTR", "LOAD_METHOD") and near[0][1] in _ADDERS:
            return 0, number
        if any(other == "STORE_SUBSCR" and there == number for other, _, there in near):
            best = min(best or (9, 0), (1, number))
        end = next((step for step in steps[place + 1 : place + FAR] if step[0].startswith(_ENDS)), ("", None))
        if end[0].startswith("STORE_") and end[1] == name:
            best = min(best or (9, 0), (2, number))
    return best
