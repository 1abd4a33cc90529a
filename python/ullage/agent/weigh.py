"""What does an object weigh, with all that hangs below it? Estimated from a bounded number of its parts: of a list,
some evenly spread elements stand for all.

The surprise: no code of the program may run here, so that nothing is asked of an object itself. Its type is told by
type(), what it refers to by gc.get_referents, and sizes, elements and buffers come from the built-in types' own
functions, whatever a subclass makes of them. Of memory that C++ holds for an object, what
libraries.py knows is seen.
"""

import gc
import sys
from _collections import deque
from itertools import _tee_dataobject, chain, cycle, islice

import _ullage_common as common
import _ullage_kinds as types
import _ullage_libraries as libraries
import _ullage_modules as modules
import _ullage_slots as slots
from _ullage_common import thread_time

MAX_STEPS = 3000
FEW, FEWER = 48, 6  # elements that stand for all: of the outermost containers, and of those inside
ATTRIBUTES = 64  # of an instance
EACH = 12  # steps that an element of the outermost container may take
LARGE = 1 << 16  # in one piece: its header alone shares a page with other objects
SHARED = 64  # references to what belongs to everybody, such as an interned string
LEAF = 0.25  # steps that a leaf takes
# After the steps: so many more, once for each of so many, but so many times at most.
ROUND, EACH_ROUND, ROUNDS = 32, 25, 4
CHOSEN, CHOSEN_LEAVES, CHOSEN_LARGE = 8, 32, 12  # of what is left then
GOLDEN = 0.618
EVERYWHERE = -1  # in place of the number of a window: in several of them
ROUGH, ROUGH_STEPS = 3, 20  # elements, and steps for each, to see which container is worth a look

_LEAVES = (str, bytes, bytearray, int, float, complex)
_LISTS = (list, tuple)
_OTHERS = (dict, set, frozenset, deque)
_PASSED_BY = (
    type,
    type(None),
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.CodeType,
    types.FrameType,
)
_NOTHING = types.ids(type(None), bool)  # there is one of each
_METHOD, _OF_OBJECT = type(str.upper), types.namespace(object)["__sizeof__"]
_LIBRARY = getattr(sys, "stdlib_module_names", ())


def weigh(root, most=MAX_STEPS, seen=None, closures=False, names=None):
    """Bytes: `objects` of Python in small pieces, `arrays` in large ones, `tensors` of torch. What was not reached
    within `most` steps is estimated by some of its containers; instances there weigh with their own data, because
    other attributes lead to anything. Left out is what is `seen` already, by ids, which gets those met.
    `closures`: with what functions close over, as those that cloudpickle sends; a callback's leads to anything.
    `names`: a module's, for all that is below it: no two of them are alike."""
    totals, told = [0.0, 0.0, 0.0], {}
    array, tensor = common.names("numpy").get("ndarray"), common.names("torch").get("Tensor")
    seen = set() if seen is None else seen
    own = (root,) if names is None else [one for key, one in list(dict.items(names)) if not _is_dunder(key)]
    todo = deque([(one, 1.0) for one in own])
    data = tuple([kind for kind in (array, tensor) if kind is not None])
    # As many as can be gone into: an element that is not reached is only estimated.
    outer, inner, whole = max(FEWER, min(FEW, most // EACH)), FEWER, True
    rounds = min(ROUNDS, most // EACH_ROUND)
    while todo:
        if most <= 0:
            if rounds == 0:
                break
            rounds, whole, outer, inner, most = rounds - 1, False, 2, 2, ROUND
            todo = _some(todo, seen, data)
            continue
        value, weight = todo.popleft()
        most -= LEAF
        kind = type(value)
        if closures and kind is types.FunctionType and id(value) not in seen:
            seen.add(id(value))
            todo.extend([(cell, weight) for cell in value.__closure__ or ()])
        if issubclass(kind, _PASSED_BY) or id(value) in seen:
            continue
        seen.add(id(value))
        if issubclass(kind, _LEAVES):
            # One reference is ours, one the container's.
            if sys.getrefcount(value) <= SHARED:
                plain = next(leaf for leaf in _LEAVES if issubclass(kind, leaf))
                _count(totals, plain.__sizeof__(value), weight)
            continue
        most -= 1
        if issubclass(kind, _LISTS):
            if not slots.complete(value):
                continue
            plain = list if issubclass(kind, list) else tuple
            _count(totals, plain.__sizeof__(value) + 16, weight)
            length = plain.__len__(value)
            few = min(length, outer if weight == 1.0 else inner)
            for number in range(few):
                todo.append((plain.__getitem__(value, number * length // few), weight * length / few))
        elif issubclass(kind, _OTHERS):
            plain = next(other for other in _OTHERS if issubclass(kind, other))
            _count(totals, plain.__sizeof__(value) + 16, weight)
            length = plain.__len__(value)
            few = min(length, outer if weight == 1.0 and whole else FEWER)
            if plain is dict:
                # From both ends, because keys that are numbered grow.
                items = dict.items(value)
                pairs = chain(islice(items, few - few // 2), islice(reversed(items), few // 2))
                todo.extend([(one, weight * length / few) for pair in pairs for one in pair])
            else:
                todo.extend([(one, weight * length / few) for one in islice(plain.__iter__(value), few)])
        elif array is not None and issubclass(kind, array):
            _weigh_array(value, weight, array, tensor, totals, todo)
        elif tensor is not None and issubclass(kind, tensor):
            _weigh_tensor(value, weight, kind, tensor, totals, seen)
        elif (behind := libraries.memory_of(value, kind)) is not None:
            places, shown = behind
            all_of_it = sum(places.values())
            for place, size in places.items():
                # It stands for others, until one is met that shares it.
                if place in told:
                    totals[1] += size - told[place]
                    told[place] = size
                elif ("behind", place) not in seen:
                    seen.add(("behind", place))
                    told[place] = max(size, weight * shown * size / all_of_it)
                    totals[1] += told[place]
        else:
            _count(totals, _own_size(value, kind) + 16, weight)
            for part in gc.get_referents(value) if gc.is_tracked(value) else ():
                if not whole and not (type(part) is dict or type(part) is tuple or issubclass(type(part), _LEAVES)):
                    continue
                if type(part) is dict and len(part) <= ATTRIBUTES and id(part) not in seen:
                    # Attributes: no two of them are alike, so that none stands for another.
                    seen.add(id(part))
                    _count(totals, dict.__sizeof__(part) + 16, weight)
                    some = [one for one in part.values() if id(type(one)) not in _NOTHING]
                    if not whole:
                        some = [one for one in some if type(one) is tuple or issubclass(type(one), _LEAVES)]
                    todo.extend([(one, weight) for one in some])
                elif whole or type(part) is not dict:
                    todo.append((part, weight))
    return {"objects": int(totals[0]), "arrays": int(totals[1]), "tensors": int(totals[2])}


def _is_dunder(key):
    return type(key) is str and key[:2] == "__"


def _some(todo, seen, data):
    """Of what is left, some leaves and some containers, which stand for all; of arrays and tensors more."""
    leaves, others, large = [], [], []
    for value, weight in todo:
        kind = type(value)
        if issubclass(kind, _LEAVES):
            leaves.append((value, weight))
        elif not issubclass(kind, _PASSED_BY) and id(value) not in seen:
            (large if issubclass(kind, data) else others).append((value, weight))
    some = deque()
    for parts, most in ((leaves, CHOSEN_LEAVES), (others, CHOSEN), (large, CHOSEN_LARGE)):
        few = min(len(parts), most)
        for number in range(few):
            # One of each stretch, at no fixed distance: keys and values alternate.
            value, weight = parts[int((number + number * GOLDEN % 1) * len(parts) / few)]
            some.append((value, weight * len(parts) / few))
    return some


def in_runs(window, few, place, windows):
    """All elements of a window, first `few` in a row, which is how they share and alternate: at the beginning of the
    first window and at the end of the last; of a single one half of them at each end."""
    middle = (len(window) - few) // 2
    if len(window) <= few or place == 0 and windows > 1:
        return window
    if windows == 1:
        end = len(window) - few // 2
        return window[: few - few // 2] + window[end:] + window[few - few // 2 : end]
    start = len(window) - few if place == windows - 1 else middle
    return window[start : start + few] + window[:start] + window[start + few :]


def scaled(lengths, rest, places, length):
    """Bytes of all elements, by those of some windows. What one element alone holds stands for as many as there are.
    What neighbours share stands for as many as there are borders between them: the first and last run are cut off. What
    is met in several windows is there once."""
    kept, share = 0.0, length / len(lengths)
    kept += sum([size for size, number, _ in places if number == EVERYWHERE])
    for number, looked in enumerate(lengths):
        if not looked:
            continue
        alone = sum([size for size, window, times in places if window == number and times == 1])
        kept += (rest[number] + alone) * share / looked
        shared = [size for size, window, times in places if window == number and times > 1]
        if shared:
            distinct = 1 + (len(shared) - 1) * max(0.0, share - 1) / max(1, looked - 1)
            kept += sum(shared) / len(shared) * distinct
    return kept


def by_turns(heap, candidates, until):
    """Containers, of which those with most new elements come first: by turns one of them, and the one whose new
    elements weigh most, by some of them. There may be no time to look into all."""
    rough = []
    for value, number, base, length, nested in candidates:
        if thread_time() > until:
            break
        if number is None and not slots.complete(value):
            rough.append(0.0)
            continue
        all_of_it, windows = heap._windows(value, type(value))
        few = ROUGH // max(1, len(windows))
        some = [
            one for place, window in enumerate(windows) for _, one in in_runs(window, few, place, len(windows))[:few]
        ]
        each = sum([sum(weigh(one, ROUGH_STEPS).values()) for one in some]) / max(1, len(some))
        rough.append(each * (all_of_it / max(1, length) if nested else 1.0) * (length - base[0]))
    order, done, turns = sorted(range(len(rough)), key=lambda one: -rough[one]), set(), []
    for place, heaviest in zip(range(len(rough)), order):
        for one in (heaviest, place):
            if one not in done:
                done.add(one)
                turns.append(candidates[one])
    return turns + candidates[len(rough) :]


def _own_size(value, kind):
    """By what a type of Python's own library says of itself, such as an ElementTree's element of its children. Else
    without what is of variable length where the type does not tell it right: of generators and coroutines
    object.__sizeof__ is garbage on CPython 3.11."""
    told = types.of_class(kind, "__sizeof__")
    if type(told) is _METHOD and told is not _OF_OBJECT:
        if types.module_of(told.__objclass__).partition(".")[0] in _LIBRARY:
            return told(value)
    basic = type.__dict__["__basicsize__"].__get__(kind)
    size = object.__sizeof__(value)
    return size if size < basic + LARGE else basic


def _count(totals, size, weight):
    totals[size >= LARGE] += weight * ((size + 15) & ~15)


def _weigh_array(value, weight, array, tensor, totals, todo):
    _count(totals, 112, weight)
    base = lent_by(array.base.__get__(value))
    if base is not None:
        # A view: of another array, of bytes, of a tensor; a mapped file or another's buffer is not this process's own.
        if issubclass(type(base), (array, bytes, bytearray) + ((tensor,) if tensor is not None else ())):
            todo.appendleft((base, weight))  # the array's own bytes: not behind the others, which may not be reached
        return
    size = array.nbytes.__get__(value)
    _count(totals, size, weight)
    if array.dtype.__get__(value).hasobject:
        length = array.size.__get__(value)
        few = min(length, FEW if weight == 1.0 else FEWER)
        for number in range(few):
            todo.append((array.item(value, number * length // few), weight * length / few))


def lent_by(base):
    """What an array's base stands for: `numpy.frombuffer` and `numpy.asarray` put a memoryview between an array and the
    bytes that it shows."""
    try:
        return memoryview.obj.__get__(base) if type(base) is memoryview else base
    except ValueError:  # it was released
        return base


def _weigh_tensor(value, weight, kind, tensor, totals, seen):
    _count(totals, object.__sizeof__(value) + 16, weight)
    parameter = kind is common.names("torch.nn").get("Parameter")
    if kind is tensor or parameter:
        # A parameter holds its gradient, where no collector sees it.
        for one in (value, value.grad if parameter else None):
            if type(one) is not kind and type(one) is not tensor:
                continue
            storage = one.untyped_storage()
            place = storage.data_ptr() if storage.device.type == "cpu" else 0
            if place and ("tensor", place) not in seen:
                seen.add(("tensor", place))
                size = storage.nbytes()
                totals[2] += max(size, weight * min(size, one.numel() * one.element_size()))


def anonymous():
    """RssAnon of this process, bytes (proc_pid_status(5))."""
    with open("/proc/self/status", "rb") as file:
        for line in file:
            if line.startswith(b"RssAnon:"):
                return int(line.split()[1]) * 1024
    return None


# --- samplers -------------------------------------------------------------------------------------------

MOST_SAMPLERS = 200  # objects that a loader's sampler leads to


def index_list(loader):
    """Length of the lists of Python ints that torch's own samplers make for each epoch: of those that a sampler of the
    program's draws from too. None where there is none."""
    of_torch, of_ranks = common.names("torch.utils.data.sampler"), common.names("torch.utils.data.distributed")
    sampler, lengths, seen = of_torch.get("Sampler"), [], set()
    try:
        todo = deque((types.attribute(loader, "batch_sampler"), types.attribute(loader, "sampler")))
        while todo and len(seen) < MOST_SAMPLERS:
            one = todo.popleft()
            kind = type(one)
            if id(one) in seen:
                continue
            seen.add(id(one))
            if kind is of_torch.get("RandomSampler"):
                drawn_once = types.attribute(one, "replacement") is False
                lengths.append(_length(types.attribute(one, "data_source")) if drawn_once else None)
            elif kind is of_torch.get("WeightedRandomSampler"):
                lengths.append(types.attribute(one, "num_samples"))
            elif kind is of_ranks.get("DistributedSampler"):
                # It has asked its dataset once, and pads to a multiple of the ranks.
                lengths.append(types.attribute(one, "total_size"))
            elif (kind is list or kind is tuple or kind is dict) and len(one) <= FEW:
                todo.extend(dict.values(one) if kind is dict else one)
            elif sampler is not None and any([base is sampler for base in types.mro(kind)]):
                # Nor what it samples, which may have loaders of its own.
                parts = types.attributes_of(one)
                todo.extend(dict.values(parts) if type(parts) is dict and len(parts) <= ATTRIBUTES else ())
    except Exception:
        pass
    return sum([length for length in lengths if type(length) is int]) or None


_PLAIN_LENGTHS = (list, tuple, dict, set, frozenset, deque, str, bytes, bytearray, range)


def length_of(data):
    """`len(data)` without a call of the program's own code: of built-in types, arrays and tensors, of torch's datasets,
    and where `__len__` is as simple as `return len(self.files)`, `return self.n` or `return 1000`."""
    kind = type(data)
    for plain in _PLAIN_LENGTHS:
        if kind is plain:
            return plain.__len__(data)
    if kind is common.names("numpy").get("ndarray") or kind is common.names("torch").get("Tensor"):
        return int(data.shape[0]) if len(data.shape) else None
    return _length_by_code(data, kind)


def _length_by_code(data, kind):
    function = types.of_class(kind, "__len__")
    if type(function) is not types.FunctionType:
        return None
    code = function.__code__
    names, constants = list(code.co_names), [one for one in code.co_consts if one is not None]
    documentation = function.__doc__
    constants = [one for one in constants if one is not documentation]
    if code.co_argcount != 1 or len(code.co_varnames) != 1 or len(code.co_code) > 80 or code.co_freevars:
        return None
    if not names:
        return constants[0] if len(constants) == 1 and type(constants[0]) is int else None
    if types.module_of(kind) == "torch.utils.data.dataset" and names == ["tensors", "size"]:
        return length_of(types.attribute(data, "tensors")[0])
    if constants:
        return None
    counts = names[0] == "len"
    value = data
    own = types.attributes_of(data)
    if len(names) == 1 and not (type(own) is dict and names[0] in own):  # `return LENGTH`
        value = function.__globals__.get(names[0])
        return value if type(value) is int else None
    if counts and len(names) == 2 and names[1] in function.__globals__:
        value, names = function.__globals__[names[1]], names[2:]
    for name in names[1 if counts and value is data else 0 :]:
        values = types.attributes_of(value)
        if type(values) is not dict or name not in values:
            return None
        value = values[name]
    if value is data:
        return None
    return length_of(value) if counts else value if type(value) is int else None


_length = length_of


# --- iterators that keep what they have seen ------------------------------------------------------------

MAX_TEES_OR_CYCLES = 100_000
MAX_TEES = 64
WHOLE = 16  # items that are worth a word


def kept_by_iterators(ends):
    """What itertools.cycle and itertools.tee keep for later in this process, which perhaps ends; None where that is
    little or too many of them are there."""
    found = common.standing((cycle, _tee_dataobject), MAX_TEES_OR_CYCLES, ends=ends)
    if found is None or found[1] > MAX_TEES_OR_CYCLES:
        return None
    cycles, tees = [], []
    for one in found[0]:
        if type(one) is cycle:
            cycles.extend([part for part in gc.get_referents(one) if type(part) is list])
        else:
            # Its type (from 3.12 on), its iterator, then the items, then the next one of these.
            parts = [part for part in gc.get_referents(one) if type(part) not in (_tee_dataobject, type)]
            tees.append(parts[1:])
    del found
    numbers = sum(map(len, cycles)), sum(map(len, tees))
    if sum(numbers) < WHOLE:
        return None
    weights = [weigh(one) for one in cycles + tees[:MAX_TEES]]
    weight = {name: sum([one[name] for one in weights]) for name in ("objects", "arrays", "tensors")}
    return {"cycle": numbers[0], "tee": numbers[1], "weight": weight}


# --- globals of a pool's workers ------------------------------------------------------------------------

LOOKS = 2048  # tasks after which nobody looks any more
HEAVY = 16 << 20
MOST_GLOBALS = 4
PICKED, MOST_PICKED = 512, 1024  # elements, and bytes of them

_tasks = 0
_told = None


def large_globals():
    """The large globals of the program's own modules, after the 1st, 2nd, 4th, 8th … task of this worker; None where
    it is not time to look, or nothing has changed."""
    global _tasks, _told
    _tasks += 1
    if _tasks & (_tasks - 1) or _tasks > LOOKS:
        return None
    found = []
    for prefix, names in _modules_of_the_program():
        for name, value in list(names.items()):
            if type(name) is not str or name.startswith("__"):
                continue
            weight = weigh(value, 300)
            size = sum(weight.values())
            if size >= HEAVY:
                kind = type(value)
                one = {"name": prefix + name, "type_name": types.type_name(kind), "bytes": size}
                found.append(dict(one, picked=_pick(value, kind)))
    found.sort(key=lambda one: -one["bytes"])
    found = found[:MOST_GLOBALS]
    # Estimates of containers differ a little from look to look.
    told = [(one["name"], one["bytes"] >> 22) for one in found]
    if not found or told == _told:
        return None
    _told = told
    return found


def _modules_of_the_program():
    """Namespaces of the main module, and of the modules that lie beside it."""
    main, names = sys.modules.get("__main__"), common.names("__main__")
    file = names.get("__file__")
    # Under spawn the main module is a copy of the namespace that its functions work in (runpy.run_path).
    for value in list(names.values()):
        if type(value) is types.FunctionType:
            name = dict.get(value.__globals__, "__name__")
            if type(name) is str and name == "__mp_main__":
                names = value.__globals__
                break
    yield "", names
    if type(file) is not str:
        return
    beside = file[: file.rfind("/") + 1]
    if not beside.startswith("/"):
        return
    for name, module in modules.of_program(("/site-packages/",), ()):
        if module is not main and name != "__mp_main__":
            file = module.__dict__.get("__file__")
            if type(file) is str and file.startswith(beside):
                yield name + ".", module.__dict__


def _pick(value, kind):
    """A hash (FNV-1a) of some elements of a buffer, from places that its size decides: whether two processes hold the
    same. What they hold is nobody's business."""
    if kind is common.names("numpy").get("ndarray"):
        if value.dtype.hasobject or not value.flags.c_contiguous:
            return None
    elif kind is not bytes and kind is not bytearray:
        return None
    # A copy, in one step: while a view of it is there, the program could not make it longer.
    if kind is bytes or kind is bytearray:
        length, taken = len(value), value[:: max(1, len(value) // PICKED)]
    else:
        length = value.size
        taken = value.reshape(-1)[:: max(1, length // PICKED)].tobytes()
    mark = 0xCBF29CE484222325
    for byte in (*length.to_bytes(8, "little"), *taken[:MOST_PICKED]):
        mark = ((mark ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return "%016x" % mark
