"""How much of what this Python holds is garbage that its collector has not collected yet? Objects in a circle, that
nothing outside refers to.

Asked at each census: the collector may be off or wait for very many objects, and where few objects come, each with
much memory, it comes too late as well. The surprise: nothing is collected for the answer, because that would run the
program's finalizers, and change when memory comes back. What the collector would find is counted instead, by its own
rule, in a part of those objects that came since the last answer: an object is alive if more references to it exist than
come from the others, and so is all that it refers to. What comes from outside of the part counts as alive, so that too
little is found and never too much. The answers add up until the collector runs. What had come through its
collections when it became garbage waits for longer, and is sought among all objects that came last
(unreachable.rs): of these two the one that retains more is told.
"""

import gc
import sys
from _collections import deque

import _ullage_common as common
import _ullage_kinds as types
import _ullage_tensors as tensors

MOST = 4000  # objects that are looked at: next to each other, as those of a circle mostly are
LONG = 4000  # elements of one of them: what it refers to counts as referred to from outside
FAR_BACK = 1 << 15  # objects of all generations
WITHIN_NS = 14_000_000  # of CPU time, for which the program is held up

_known = None  # how often the collector had run, how many objects had come since, and the sums up to then


def _begin_anew():
    global _known
    _known = None


common.in_child.append(_begin_anew)


def count(heap):
    """`objects` since the last collection; of so many `looked` at, so many `garbage`; `bytes` of all there is. `old`:
    among all that came last, whatever the collector has gone through."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return None  # counts of references are kept by thread
    young, old = _since_the_last_collection(heap), _among_all(heap)
    # Those of the youngest generation are among both.
    return old if old is not None and old["bytes"] > 2 * young["bytes"] else young


def _among_all(heap):
    found = common.native.unreachable(gc.get_threshold(), FAR_BACK, LONG, heap.tensor_types, MOST, WITHIN_NS)
    if found is None:
        return None
    some, number, others, of_others, looked = found
    del found
    size = _bytes(heap, some) * number // max(1, len(some))
    size += _bytes(heap, others) * of_others // max(1, len(others))
    return {"objects": looked, "looked": looked, "garbage": number + of_others, "bytes": size, "old": True}


def _since_the_last_collection(heap):
    global _known
    runs = sum([one["collections"] for one in gc.get_stats()])
    before, looked, garbage, size = _known[1:] if _known is not None and _known[0] == runs else (0, 0, 0, 0)
    some, objects, whole = common.newest(before, MOST)
    if not whole:
        objects = max(objects, gc.get_count()[0])
    came = max(0, objects - before)
    some = [one for one in some if not _is_long(one)]  # in the place of the other list, whose references would count
    found = _circles(some)
    # Tuples that may be in the making are not handed out, and no others stand for them.
    scale = max(1.0, came / MOST)
    looked, garbage = looked + len(some), garbage + len(found)
    size += int(_bytes(heap, found) * scale)
    _known = runs, objects, looked, garbage, size
    return {"objects": objects, "looked": looked, "garbage": garbage, "bytes": size}


def _is_long(one):
    kind = type(one)
    plain = next((plain for plain in _CONTAINERS if issubclass(kind, plain)), None)
    return plain is not None and plain.__len__(one) > LONG


def _circles(some):
    some.append([])  # nobody but this list refers to it: so many references are ours
    inside = _among(some)
    references = [sys.getrefcount(one) for one in some]
    ours = references.pop()
    some.pop()
    todo = [one for one, number in zip(some, references) if number - ours > inside[id(one)]]
    alive = set(map(id, todo))
    while todo:
        for part in gc.get_referents(todo.pop()):
            if id(part) in inside and id(part) not in alive:
                alive.add(id(part))
                todo.append(part)
    return [one for one in some if id(one) not in alive]


def _among(some):
    """References to each that come from the others. By itself, because its variables refer to the last ones."""
    inside = {id(one): 0 for one in some}
    for one in some:
        for part in gc.get_referents(one):
            if id(part) in inside:
                inside[id(part)] += 1
    return inside


_CONTAINERS = (list, tuple, dict, set, frozenset, deque)
_PLAIN = types.ids(list, dict, set, tuple)
_LEAVES = types.ids(str, bytes, bytearray)


def _sizeof(one):
    try:
        return common.names("_ctypes")["sizeof"](one)
    except TypeError:  # a function, a pointer's type
        return 0


def _bytes(heap, found):
    """That these objects retain: their own, and what of their leaves, arrays and storages nothing else refers to."""
    size, storages, bases = 0, {}, {}
    for one in (*found, *_held_by_these_alone(found, heap.array)):
        if heap.is_tensor(one):
            place, whole = tensors.storage_of(one)
            if whole:
                storages.setdefault(place, [0, whole, one])[0] += 1
        elif type(one) is heap.array:
            base = heap.array.base.__get__(one)
            if base is None:
                size += heap.array.nbytes.__get__(one)
            elif type(base) is heap.array or id(type(base)) in _LEAVES:
                bases.setdefault(id(base), [base, 0])[1] += 1
        else:
            size += _own(one)
    one = base = None
    for base in _without_others(bases):
        size += len(base) if type(base) is not heap.array else _shown(heap, base)
    return size + sum([whole for number, whole, one in storages.values() if not _is_shared(one, number)])


def _shown(heap, base):
    """A view of a view shows what another one has."""
    return heap.array.nbytes.__get__(base) if heap.array.base.__get__(base) is None else 0


def _is_shared(tensor, number):
    """Whether more than so many tensors lie in its storage: what a view is of may live."""
    count = common.names("torch._C").get("_storage_Use_Count")
    try:
        return count is not None and count(tensor.untyped_storage()._cdata) > number + 1  # the storage's own object
    except Exception:
        return False


def _own(one):
    kind = type(one)
    if types.module_of(type(kind)) == "_ctypes":
        return _sizeof(one)  # of an array or a structure with its buffer, which its own `__sizeof__` leaves out
    if id(kind) in _PLAIN or id(kind) in _LEAVES:
        return kind.__sizeof__(one)
    return type.__dict__["__basicsize__"].__get__(kind)


def _held_by_these_alone(found, array):
    """Arrays, text and bytes to which nothing else refers: what is shared would stay."""
    parts = {}
    for one in found:
        # All of a long one would be listed at once.
        for part in gc.get_referents(one) if not _is_long(one) else ():
            if type(part) is array or id(type(part)) in _LEAVES:
                parts.setdefault(id(part), [part, 0])[1] += 1
    part = None
    return _without_others(parts)


def _without_others(parts):
    """Of objects and how many references to them are known, those to which there are no others."""
    parts = [*parts.values(), [bytearray(), 0]]
    references = [sys.getrefcount(part[0]) for part in parts]
    ours = references.pop()
    parts.pop()
    return [part[0] for part, number in zip(parts, references) if number - ours <= part[1]]
