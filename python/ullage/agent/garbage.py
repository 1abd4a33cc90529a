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
SOME = 1000  # of them that are weighed
MUCH = 16 << 20  # bytes of garbage, from which on it is asked whether something that lives shares them
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
    found = common.native.unreachable(gc.get_threshold(), FAR_BACK, LONG, heap.tensor_types, SOME, WITHIN_NS)
    if found is None:
        return None
    some, number, others, of_others, looked = found
    del found
    places = {}
    _bytes(heap, some, places)
    size = _of_others_than_live(heap, some, places)
    if len(places) == len(some):  # no two of them lie in one place
        size = size * number // max(1, len(some))
    size += _bytes(heap, others, places) * of_others // max(1, len(others))
    return {"objects": looked, "looked": looked, "garbage": number + of_others, "bytes": size, "old": True}


def _of_others_than_live(heap, some, places):
    """Bytes of these places in which no tensor lies that lives."""
    if sum(places.values()) >= MUCH:
        dead, living = set(map(id, some)), {}
        standing = common.standing(heap.tensor_types, MOST)
        if standing is not None:
            _bytes(heap, [one for one in standing[0] if id(one) not in dead], living)
        return sum([size for place, size in places.items() if place not in living])
    return sum(places.values())


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
    size += int(_bytes(heap, found, {}) * scale)
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


def _bytes(heap, found, places):
    """That these objects retain: of tensors and arrays what they lie in, if it is not in `places` yet, which gets it;
    of the others their own, and their leaves'."""
    size = 0
    for one in (*found, *_held_by_these_alone(found, heap.array)):
        if heap.is_tensor(one) or type(one) is heap.array:
            place, whole = _shows(heap, one)
            if whole:
                size += max(0, whole - places.get(place, 0))
                places[place] = max(whole, places.get(place, 0))
        else:
            size += _own(one)
    return size


def _shows(heap, one):
    """Of a view what it shows: what it is of may live."""
    if type(one) is heap.array:
        place, size = heap.base_of(one)
        return place, min(size, heap.array.nbytes.__get__(one))
    place, size = tensors.storage_of(one)
    return place, tensors.shown_of(one, size)


def _own(one):
    kind = type(one)
    if types.module_of(type(kind)) == "_ctypes":
        return _sizeof(one)  # of an array or a structure with its buffer, which its own `__sizeof__` leaves out
    if id(kind) in _PLAIN or id(kind) in _LEAVES:
        return kind.__sizeof__(one)
    return type.__dict__["__basicsize__"].__get__(kind)


def _held_by_these_alone(found, array):
    """Arrays, text and bytes to which nothing else refers: what is shared would stay."""
    some, numbers = [], {}
    for one in found:
        # All of a long one would be listed at once.
        for part in gc.get_referents(one) if not _is_long(one) else ():
            kind = type(part)
            if kind is array or id(kind) in _LEAVES:
                if id(part) not in numbers:
                    some.append(part)
                numbers[id(part)] = numbers.get(id(part), 0) + 1
    part = None
    some.append(bytearray())  # nobody but this list refers to it: so many references are ours
    references = [sys.getrefcount(one) for one in some]
    ours = references.pop()
    some.pop()
    return [one for one, number in zip(some, references) if number - ours <= numbers[id(one)]]
