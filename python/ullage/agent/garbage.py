"""How much of what this Python holds is garbage that its collector has not been asked to collect? Objects in a circle,
that nothing outside refers to.

Asked at each census: the collector may be off or wait for very many objects, and where few objects come, each with
much memory, it comes too late as well. The surprise: nothing is collected for the answer, because that would run the
program's finalizers, and change when memory comes back. What the collector would find is counted instead, by its own
rule, in a part of those objects that came since the last answer: an object is alive if more references to it exist than
come from the others, and so is all that it refers to. What comes from outside of the part counts as alive, so that too
little is found and never too much. The answers add up until the collector runs: a part of all would mostly be of what
was loaded at the start.
"""

import gc
import sys
from _collections import deque

import _ullage_common as common
import _ullage_kinds as types
import _ullage_tensors as tensors

MOST = 4000  # objects that are looked at: next to each other, as those of a circle mostly are
LONG = 4000  # elements of one of them: what it refers to counts as referred to from outside

_known = None  # how often the collector had run, how many objects had come since, and the sums up to then


def _begin_anew():
    global _known
    _known = None


common.in_child.append(_begin_anew)


def count(heap):
    """`objects` since the last collection; of so many `looked` at, so many `garbage`; `bytes` of all there is."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return None  # counts of references are kept by thread
    global _known
    runs = sum([one["collections"] for one in gc.get_stats()])
    before, looked, garbage, size = _known[1:] if _known is not None and _known[0] == runs else (0, 0, 0, 0)
    some, objects, whole = common.newest(before, MOST)
    if not whole:
        objects = max(objects, gc.get_count()[0])
    came = max(0, objects - before)
    some = [one for one in some if not _is_long(one)]  # in the place of the other list, whose references would count
    found = _circles(some)
    places, each = {}, 0
    for one in found:
        each += _size(heap, one, places)
    # Tuples that may be in the making are not handed out, and no others stand for them.
    scale = max(1.0, came / MOST)
    looked, garbage = looked + len(some), garbage + len(found)
    size += int((each + sum(places.values())) * scale)
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


def _size(heap, one, places):
    """Of a tensor or an array what it lies in, into `places`; of the rest its own and its leaves' bytes."""
    kind = type(one)
    if heap.is_tensor(one):
        place, size = tensors.storage_of(one)
        places[place] = size
        return 0
    if types.module_of(type(kind)) == "_ctypes":
        return _sizeof(one)  # of an array or a structure with its buffer, which its own `__sizeof__` leaves out
    total = kind.__sizeof__(one) if id(kind) in _PLAIN else type.__dict__["__basicsize__"].__get__(kind)
    for part in gc.get_referents(one):
        kind = type(part)
        if kind is heap.array:
            place, size = heap.base_of(part)
            places[place] = size
        elif id(kind) in _LEAVES and sys.getrefcount(part) < 64:
            total += kind.__sizeof__(part)
    return total
