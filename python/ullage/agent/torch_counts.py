"""What torch keeps in this Python: process groups, compiled graphs, circles through autograd, batches behind a
late one, what a dataset's iterator shuffles in a buffer, and what goes through a collective of objects.

Loaded with the module of torch that it is about. Counts are told when they are more than ever before by a quarter, or
by anything after 5 s. The surprise: nothing here may stand in a traceback of the job or be called by it; so the moments
are those at which torch looks up an attribute.
"""

import gc
import os
import sys
from _collections import deque
from itertools import islice

import _ullage_agent as agent
import _ullage_common as common
import _ullage_kinds as types
import _ullage_safe_points as safe_points
import _ullage_slots as slots
import _ullage_tensors as tensors
import _ullage_weigh as weigh
from _ullage_common import monotonic, thread_time

MORE = 1.25
AGAIN_S = 5.0
LEAST_WAITING = 2  # batches
OBJECT = 1 << 20  # bytes, times ranks: less is not worth a word
OBJECT_STEPS = 300
MANY_CIRCLES = 8
CIRCLES_S = 0.4
FEW_PARTS = 32  # of what a context holds
MOST_TENSORS = 4000  # of more, some stand for all
MOST_YOUNG = 100_000  # objects that wait for the collector: of more, those in the middle stand for all
LEAST_BUFFERED = 64  # samples
FEW = 32  # of them that are compared
PARTS = 300  # of a dataset's iterator that are looked at
DEPTH = 10  # generators and objects below each other
MANY_BUFFERS = 1000

_told = {}  # what -> (count, when)
_profiled = None  # since when a profiler of torch's records, as far as looks have shown
_awaited = {}  # (id of an iterator, place in the order) that was told of -> batches that wait from which on it is again
_seen = {}  # id of a list that a generator holds -> (length, place of some elements -> id)
_next_fetch = _next_circles = 0.0
_spent = 0.0  # seconds on collectives
_began = monotonic()
_collectives = {}  # name -> (bytes, when)


def _after_fork():
    global _told, _profiled, _seen, _next_fetch, _next_circles, _spent, _began, _collectives
    _told, _profiled, _seen = {}, None, {}
    _awaited.clear()
    _next_fetch = _next_circles = 0.0
    _spent, _began, _collectives = 0.0, monotonic(), {}


def _look():
    """At what is counted already."""
    world = common.names("torch.distributed.distributed_c10d").get("_world")
    if world is not None:
        _more("process-groups", len(world.pg_map))
    counters = common.names("torch._dynamo.utils").get("counters")
    if counters is not None:
        _more("compiled-graphs", counters.get("stats", {}).get("unique_graphs", 0))
    _profiles()
    _circles()


def _profiles():
    """For how many seconds a profiler records without a break: it keeps every event until it is stopped."""
    global _profiled
    if common.names("torch.autograd.profiler").get("_is_profiler_enabled") is not True:
        _profiled = None
        _told.pop("profiler", None)
        return
    if _profiled is None:
        _profiled = monotonic()
        _told["profiler"] = -1, 0.0  # told from its first moment on: a limit may be met within a second
    _more("profiler", int(monotonic() - _profiled))


def _more(what, count, size=None, name=""):
    before, when = _told.get(what, (0, 0.0))
    now = monotonic()
    if count <= before or (count < MORE * before and now < when + AGAIN_S):
        return
    _told[what] = count, now
    agent.send({"kind": "kept", "what": what, "count": count, "bytes": size, "name": name})


# --- autograd -------------------------------------------------------------------------------------------


def _before_collection():
    """Seconds until it wants to be called again."""
    _circles()
    return max(0.0, _next_circles - monotonic())


common.native.before_collection(_before_collection)


def _circles():
    """Tensors that the function which made them holds as an attribute: circles that wait for the collector. They are
    sought among the youngest objects; and where there are such, among all: those that came through two collections wait
    until there are a quarter more objects, which in a program with many is for good. The collector lists the tensor,
    not the function's context."""
    global _next_circles
    now = monotonic()
    if now < _next_circles:
        return
    _next_circles = now + CIRCLES_S
    began = thread_time()
    tensor = common.names("torch").get("Tensor")
    base = common.names("torch.autograd.function").get("BackwardCFunction")
    quiet = common.names("torch._C").get("DisableTorchFunction")
    if base is None or quiet is None:
        return
    try:
        with quiet():
            _count_circles(tensor, base)
    finally:
        _next_circles = now + max(CIRCLES_S, (thread_time() - began) / common.BUDGET)


def _count_circles(tensor, base):
    young = [one for one in common.newest(0, MOST_YOUNG)[0] if type(one) is tensor]
    count, size, names = _in_circles(young, base)
    if count >= MANY_CIRCLES:
        del young
        found = common.standing((tensor,), MOST_TENSORS)
        if found is not None and found[1] > 0:
            share = found[1] / len(found[0])
            in_all = _in_circles(found[0], base, share)
            # One that was met by chance would stand for many.
            if in_all[0] >= MANY_CIRCLES and share * in_all[0] > count:
                count, size, names = round(share * in_all[0]), in_all[1], in_all[2]
    if count >= MANY_CIRCLES:
        _more("autograd-circles", count, size, max(names, key=names.get).removesuffix("Backward"))


def _in_circles(some, base, share=1):
    """(how many of these tensors, bytes that their contexts hold of what was computed, name of the function that made
    them -> how many). A view keeps what it is a view of, and so does the function that has the view. `share`: for how
    many each stands."""
    count, names, storages = 0, {}, {}
    for one in some:
        context = _context(one, base)
        held = _held(context) if context is not None else ()
        if any([part is one for part in held]):
            count += 1
            for part in held:
                # What has no function is an input, which the program may keep anyway.
                if type(part) is type(one) and (part is one or _is_computed(part)):
                    place, whole = tensors.storage_of(part)
                    holder, _ = storages.get(place, (id(context), 0))
                    storages[place] = holder if holder == id(context) else None, whole
            name = types.qualified_name(type(context))
            names[name] = names.get(name, 0) + 1
    size = sum([whole * (share if holder is not None else 1) for holder, whole in storages.values()])
    return count, round(size), names


def _is_computed(tensor):
    try:
        return tensor.grad_fn is not None
    except Exception:  # a view of what was changed in place
        return False


def _context(tensor, base):
    """That of the function of the program's that made it, or what it is a view of; else None."""
    try:
        context, whole = tensor.grad_fn, tensor._base
        if context is None or not issubclass(type(context), base):
            # A class of the program's may say itself what its function is.
            context = whole.grad_fn if type(whole) is type(tensor) else None
    except Exception:  # a view of what was changed in place
        return None
    return context if context is not None and issubclass(type(context), base) else None


def _held(context):
    """Its attributes, with what small tuples, lists and dicts among them hold."""
    held = []
    for part in gc.get_referents(context):
        for value in _first(part) if type(part) is dict else [part]:
            kind = type(value)
            few = (kind is tuple or kind is list or kind is dict) and len(value) <= FEW_PARTS
            held += gc.get_referents(value) if few else [value]
    return held


# --- loaders --------------------------------------------------------------------------------------------


def on_dataloader(module):
    iterator = module._MultiProcessingDataLoaderIter
    # Asked for once for each batch that is waited for.
    access = common.native.access
    iterator._get_data = access(iterator._get_data, _awaits, 0.0, "_rcvd_idx")
    fetcher = sys.modules["torch.utils.data._utils.fetch"]._IterableDatasetFetcher
    fetcher.fetch = access(fetcher.fetch, _fetches, 1.0)


def _awaits(iterator, waited_s):
    """Asked for again while the same batch is waited for: others have arrived before it."""
    place = iterator._rcvd_idx
    least = _awaited.get((id(iterator), place), LEAST_WAITING)
    tasks = iterator._task_info
    late = tasks[place][0]
    waiting = [task[1] for task in tasks.values() if len(task) == 2]
    # Whatever is not made yet is in the queue of the late worker.
    every = all([len(task) == 2 or task[0] == late for task in tasks.values()])
    if len(waiting) < (LEAST_WAITING if every else least):
        return
    # Said again when it is twice as many.
    _awaited.clear()
    _awaited[id(iterator), place] = 2 * len(waiting)
    agent.send(
        {
            "kind": "waiting",
            "batches": len(waiting),
            "outstanding": len(tasks),
            "worker": late,
            "waited_s": waited_s,
            "batch": weigh.weigh(waiting[-1], OBJECT_STEPS),
        }
    )


# --- buffers of datasets --------------------------------------------------------------------------------


def _fetches(fetcher):
    """Before a batch is fetched the dataset's generators are at rest, and what they hold can be asked for."""
    global _next_fetch
    now = monotonic()
    if now < _next_fetch:
        return
    began = thread_time()
    for holder, buffer in _buffers(fetcher.dataset_iter):
        length = len(buffer)
        before, some = _seen.get(id(buffer), (0, {}))
        others = sum([place < length and id(buffer[place]) != one for place, one in some.items()])
        if length <= before or others >= 2 or not some:
            some = {length * place // FEW: id(buffer[length * place // FEW]) for place in range(FEW)}
        _seen[id(buffer)] = length, some
        if others < 2 or len(_seen) > MANY_BUFFERS:
            continue
        # Others lie where some did when it was first seen, or when that was last so: what a program only adds to is no
        # buffer. Where all of them are others, it may be another list.
        full, draws = length == before, any([_draws_lots(code) for code in _codes(*holder)])
        if full and draws or others < FEW and (full or draws):
            size = sum(weigh.weigh(buffer, OBJECT_STEPS).values())
            _more("shuffle-buffer", length, size, _place(holder[0]))
    _next_fetch = now + max(1.0, (thread_time() - began) / common.BUDGET)


def _buffers(root):
    """Lists that the generators below an iterator hold, with the code of each generator and its globals."""
    todo, seen, found = deque(((root, (None, {}), 0),)), set(), []
    while todo and len(seen) < PARTS:
        one, holder, depth = todo.popleft()
        kind = type(one)
        if id(one) in seen or depth > DEPTH or issubclass(kind, (type, types.ModuleType, types.CodeType)):
            continue
        seen.add(id(one))
        if kind is list or kind is deque:
            # Of numbers and names it is no buffer of samples.
            if len(one) >= LEAST_BUFFERED and slots.complete(one) and not issubclass(type(one[0]), (int, float, str)):
                found.append((holder, one))
        elif kind is types.CellType:  # a local that a function inside uses too
            todo.extend([(part, holder, depth) for part in gc.get_referents(one)])
        elif kind is types.FrameType:
            if one.f_code is holder[0]:  # up to CPython 3.10 a generator refers to its frame, and that to its locals
                todo.extend([(part, holder, depth) for part in gc.get_referents(one)])
        elif kind is types.GeneratorType:
            frame = one.gi_frame
            holder = one.gi_code, frame.f_globals if frame is not None else {}
            todo.extend([(part, holder, depth + 1) for part in gc.get_referents(one)])
        elif gc.is_tracked(one) and not issubclass(kind, (dict, tuple, set, frozenset, types.FunctionType)):
            steps = types.of_class(kind, "__next__"), types.of_class(kind, "__iter__")
            functions = [step for step in steps if type(step) is types.FunctionType]
            holder = (functions[0].__code__, functions[0].__globals__) if functions else holder
            for part in common.native.referents(one, PARTS)[1]:
                attributes = _first(part) if type(part) is dict else (part,)
                todo.extend([(value, holder, depth + 1) for value in attributes])
    return found


def _first(mapping):
    """Of its values: to list all of a large one would count references in pages that others share."""
    try:
        return list(islice(dict.values(mapping), PARTS))
    except RuntimeError:  # another thread has changed its size
        return []


def _codes(code, names):
    """Of a function, of those inside it, and of those that it calls by a name of its module."""
    if code is None:
        return ()
    inside = [one for one in code.co_consts if type(one) is types.CodeType]
    called = [dict.get(names, name) for name in code.co_names]
    return (code, *inside, *[one.__code__ for one in called if type(one) is types.FunctionType])


LOTS = {
    "shuffle",
    "randrange",
    "randint",
    "random",
    "choice",
    "choices",
    "sample",
    "integers",
    "randperm",
    "permutation",
}


def _draws_lots(code):
    return not LOTS.isdisjoint(code.co_names)


def _place(code):
    return "" if code is None else "%s, %s:%d" % (code.co_name, os.path.basename(code.co_filename), code.co_firstlineno)


# --- torch.distributed ----------------------------------------------------------------------------------


def on_distributed(module):
    if not common.replaces(b"COLLECTIVES"):
        return
    # Called by their names in their module, so that nobody else holds them. The second by each collective of objects
    # for each object that it sends.
    for name, callback in (
        ("_new_process_group_helper", safe_points.sample_if_due),
        ("_object_to_tensor", _collective),
    ):
        original = getattr(module, name, None)
        if original is not None:
            setattr(module, name, common.native.hook(original, callback, 0))


def _collective(*_):
    global _spent
    frame = common.caller()
    began, used = monotonic(), thread_time()
    try:
        if _spent > common.BUDGET * (began - _began + 1.0):
            return
        # Its own name for the object, in the function or in a comprehension of it.
        value = dict(common.locals_of(frame)).get("obj")
        while frame.f_code.co_name.startswith("<"):
            frame = frame.f_back
        name = frame.f_code.co_name
        group = dict(common.locals_of(frame)).get("group")
        ranks = sys.modules["torch.distributed.distributed_c10d"].get_world_size(group)
        weight = weigh.weigh(value, OBJECT_STEPS)
        size = sum(weight.values())
        before, when = _collectives.get(name, (0, 0.0))
        if size * ranks >= OBJECT and (size >= MORE * before or began >= when + AGAIN_S):
            _collectives[name] = size, began
            agent.send({"kind": "collective", "of": name, "line": _line(frame), "ranks": ranks, "object": weight})
    except Exception:
        pass
    _spent += thread_time() - used


def _line(frame):
    """Where the program calls it."""
    while frame is not None and "/torch/" in frame.f_code.co_filename:
        frame = frame.f_back
    return "" if frame is None else "%s:%d" % (os.path.basename(frame.f_code.co_filename), frame.f_lineno)


common.in_child.append(_after_fork)
safe_points.also.append(_look)
