"""What hangs below which name, however deep? Chains of records, trees of nodes, instances in instances: each container
in them is short, and none becomes longer.

Asked by census.py where no container explains what came. All that the program's names lead to is gone through, nearest
first, and counts for the name that it was reached from first (python/agent, below.rs). The surprise: each name above it
holds as much; the one that says most is the innermost that still does. Where there is too much to go through, some
elements of each long container stand for all of them.
"""

import sys
from itertools import islice

import _ullage_common as common
import _ullage_kinds as types
import _ullage_paths as paths
import _ullage_tensors as tensors
from _ullage_common import thread_time

MOST = 400_000  # objects: more would hold the program up
MOST_NAMED = 60  # the heaviest
FEW = 2000  # tensors and arrays that stand for all
INNERMOST = 0.7  # of what the heaviest name holds more
LONG, MOST_LONG = 1000, 6  # elements of a container of which some stand for all, and such containers, the longest
GREW = 1.25  # times as long as when it was first seen
RUNS, EACH = 16, 4  # elements that stand for all: neighbours may share what they hold, as those of a batch do
MOST_PASSED = 1_000_000  # elements of a dict, which has none by number
MOST_BELOW = 60_000  # objects below these: more are not theirs alone


_CONTAINERS = types.with_sizes(*paths.CONTAINERS)
_LISTS_AND_DICTS = paths.OF_LISTS | paths.OF_DICTS
_LEAVES = types.with_sizes(str, bytes, bytearray, int, float, complex)
_PASSED_BY = (types.ModuleType, types.FrameType, types.TracebackType, types.CodeType, types.MappingProxyType)


class Below:
    """Of one name: what hangs below it. `shown`: bytes of tensors and arrays that their elements take."""

    __slots__ = ("spot", "bytes", "objects", "storages", "shown")

    def __init__(self, spot, size, objects):
        self.spot, self.bytes, self.objects = spot, size, objects
        self.storages, self.shown = {}, 0


def below(heap, spots, least, seconds, late=()):
    """Name -> Below, where at least so many bytes hang below it; None where there was no time for all. `late`: spots
    below which only that hangs to which no others lead, those of one root together, as many objects as it counts."""
    numbers = {id(spot): number for number, spot in enumerate(spots)}
    parents = [numbers.get(id(spot[1]), -1) for spot in spots]
    for number, spot in enumerate(late, len(spots)):
        parents.append(numbers.get(id(spot[1]), -1))
        numbers.setdefault(id(spot[1]), number)
    spots = [*spots, *late]
    found = _gone_through(heap, [spot[0] for spot in spots], parents, waiting(), MOST, seconds, len(late))
    if found is None:
        return None
    sums, values, owners = found
    of = {sums[at]: Below(spots[sums[at]], sums[at + 1], sums[at + 2]) for at in range(0, len(sums), 3)}
    for number in range(len(parents) - len(late), len(parents)):
        if number in of:  # of several, all is summed up at the first
            of[number].objects = spots[number][1].count if parents[number] < 0 else 0
    step = len(values) // FEW + 1
    values, owners = values[::step], owners[::step]
    while values:
        owner = owners.pop()
        place, size, shown, _ = heap._data(values[-1])
        if step > 1:  # of very many, some stand for all; then a view counts as what it shows
            place, size, shown = id(values[-1]), shown * step, shown * step
        gradient = tensors.gradient_of(values[-1])
        values.pop()  # an array cannot be resized as long as another one refers to it
        also = () if gradient is None else heap._data(gradient)
        while place and owner >= 0:
            one = of[owner]
            one.storages[place] = size
            one.shown += shown
            if also and also[0]:
                one.storages[also[0]] = also[1] * step
                one.shown += also[2] * step
            owner = parents[owner]
    for one in of.values():
        one.bytes += sum(one.storages.values())
    # What stands in for a queue's buffer is ours: backlog.py tells of it.
    heavy = [one for one in of.values() if one.bytes >= least and one.objects and not _is_ours(type(one.spot[0]))]
    heavy.sort(key=lambda one: -one.bytes)
    return {paths.name(one.spot): one for one in reversed(heavy[:MOST_NAMED])}


def waiting():
    """What waits in queues, of which backlog.py tells."""
    backlog = sys.modules.get("_ullage_backlog")
    return backlog.waiting() if backlog is not None else []


def _gone_through(heap, roots, parents, closed, most, seconds, late=0):
    ns = int(seconds * 1e9)
    kinds = tensors.kinds() if heap.array is None else (*tensors.kinds(), heap.array)
    found = common.native.below(
        roots, parents, tuple(closed), sys.modules, _PASSED_BY, kinds, _CONTAINERS, _LEAVES, 1, most, ns, late
    )
    return None if found is None or not found[0] else found[1:]


class Some:
    """Of a long container: what hangs below some of its elements, run by run. `scale`: elements for each of these."""

    __slots__ = ("spot", "runs", "objects", "storages", "shown", "scale")

    def __init__(self, spot, scale):
        self.spot, self.scale = spot, scale
        self.runs, self.objects, self.storages, self.shown = [0] * RUNS, 0, 0, 0

    def more(self, before):
        """Bytes more below all elements. What all of them lead to counts for the first that leads there: no run counts
        for more than the second of those that came."""
        came = sorted([max(0, now - then) for now, then in zip(self.runs, before)])
        return int(sum([min(size, came[-2]) for size in came]) * self.scale)

    def until(self, length):
        """(runs, objects) of the first elements, of a container to which is added at its end."""
        last = len(self.spot[0])
        first = [size if last * (2 * run + 1) // (2 * RUNS) < length else 0 for run, size in enumerate(self.runs)]
        return first, self.objects * length // max(1, last)


def grew(container, length):
    """It was so long when it was first seen."""
    return len(container) >= max(LONG, GREW * length)


def sampled(heap, spots, until):
    """Name -> Some, of the longest containers with a name, as far as there is time."""
    long = [one for one in spots if id(type(one[0])) in _LISTS_AND_DICTS and LONG <= len(one[0]) <= _longest(one[0])]
    long.sort(key=lambda one: -len(one[0]))
    closed, found = waiting(), {}
    for spot in long[:MOST_LONG]:
        left = until - thread_time()
        if left <= 0:
            break
        one = _some_of(heap, spot, closed, left)
        if one is not None:
            found[paths.name(spot)] = one
    return found


def _longest(container):
    """Elements of a list are reached by their number, those of a dict one after the other."""
    return MOST_PASSED if id(type(container)) in paths.OF_DICTS else sys.maxsize


def _some_of(heap, spot, closed, seconds):
    length = len(spot[0])
    places = [length * (2 * run + 1) // (2 * RUNS) + at for run in range(RUNS) for at in range(EACH)]
    if id(type(spot[0])) in paths.OF_DICTS:
        # Not an OrderedDict's own, which look each value up by the hash of its key.
        values, roots, at = iter(dict.values(spot[0])), [], 0
        for first in places[::EACH]:
            roots.extend(islice(values, first - at, first - at + EACH))
            at = first + EACH
    else:
        roots = [spot[0][place] for place in places]
    found = _gone_through(heap, roots, [-1] * len(roots), [*closed, spot[0]], MOST_BELOW, seconds)
    del roots
    if found is None:
        return None
    sums, values, owners = found
    one, places = Some(spot, length / (RUNS * EACH)), [{} for _ in range(RUNS)]
    for at in range(0, len(sums), 3):
        one.runs[sums[at] // EACH] += sums[at + 1]
        one.objects += sums[at + 2]
    while values:
        owner, value = owners.pop(), values.pop()
        found = [heap._data(part) for part in (value, tensors.gradient_of(value)) if part is not None]
        del value  # an array cannot be resized as long as another one refers to it
        for place, size, shown, _ in found:
            if place and owner >= 0:
                places[owner // EACH][place] = size
                one.shown += shown
    for run, stored in enumerate(places):
        one.runs[run] += sum(stored.values())
        one.storages += sum(stored.values())
    return one


def _is_ours(kind):
    return types.module_of(kind).startswith("_ullage_")


def innermost(more):
    """Of (bytes that came, Below) those of the name that says most: not one within what repeats itself, such as the
    second node of a chain, nor one of many elements."""
    most = max([one[0] for one in more])
    heavy = [one for one in more if one[0] >= INNERMOST * most]
    return min([one for one in heavy if not _repeats(one[1].spot)] or heavy, key=lambda one: one[1].bytes)


def _repeats(spot):
    held, seen = None, set()
    while type(spot) is tuple:
        kind = type(spot[0])
        if id(kind) not in paths.OF_CONTAINERS:
            if id(kind) in seen:
                return True
            seen.add(id(kind))
        elif held is not None and len(spot[0]) > 1 and not paths.is_named(spot[0], held):
            return True
        held, spot = spot[0], spot[1]
    return False
