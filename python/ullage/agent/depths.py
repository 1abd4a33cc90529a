"""What hangs below which name, however deep? Chains of records, trees of nodes, instances in instances: each container
in them is short, and none becomes longer.

Asked by census.py where no container explains what came. All that the program's names lead to is gone through, nearest
first, and counts for the name that it was reached from first (python/agent, below.rs). The surprise: each name above it
holds as much; the one that says most is the innermost that still does.
"""

import sys

import _ullage_common as common
import _ullage_kinds as types
import _ullage_paths as paths
import _ullage_tensors as tensors

MOST = 400_000  # objects: more would hold the program up
MOST_NAMED = 60  # the heaviest
FEW = 2000  # tensors and arrays that stand for all
INNERMOST = 0.7  # of what the heaviest name holds more


_CONTAINERS = types.with_sizes(*paths.CONTAINERS)
_LEAVES = types.with_sizes(str, bytes, bytearray, int, float, complex)
_PASSED_BY = (types.ModuleType, types.FrameType, types.TracebackType, types.CodeType, types.MappingProxyType)
_NAMES = types.namespace(types.ModuleType)["__dict__"].__get__


class Below:
    """Of one name: what hangs below it. `shown`: bytes of tensors and arrays that their elements take."""

    __slots__ = ("spot", "bytes", "objects", "storages", "shown")

    def __init__(self, spot, size, objects):
        self.spot, self.bytes, self.objects = spot, size, objects
        self.storages, self.shown = {}, 0


def below(heap, spots, least, seconds):
    """Name -> Below, where at least so many bytes hang below it; None where there was no time for all."""
    numbers = {id(spot): number for number, spot in enumerate(spots)}
    parents = [numbers.get(id(spot[1]), -1) for spot in spots]
    roots = [spot[0] for spot in spots]
    # A module's names lead to all that the program has loaded.
    modules = [one for one in list(sys.modules.values()) if issubclass(type(one), types.ModuleType)]
    closed = [_NAMES(one) for one in modules]
    kinds = tensors.kinds() if heap.array is None else (*tensors.kinds(), heap.array)
    found = common.native.below(
        roots, parents, tuple(closed), _PASSED_BY, kinds, _CONTAINERS, _LEAVES, 1, MOST, int(seconds * 1e9)
    )
    if found is None or not found[0]:
        return None
    _, sums, values, owners = found
    of = {sums[at]: Below(spots[sums[at]], sums[at + 1], sums[at + 2]) for at in range(0, len(sums), 3)}
    step = len(values) // FEW + 1
    values, owners = values[::step], owners[::step]
    while values:
        owner = owners.pop()
        place, size, shown, _ = heap._data(values[-1])
        if step > 1:  # of very many, some stand for all; then a view counts as what it shows
            place, size, shown = id(values[-1]), shown * step, shown * step
        values.pop()  # an array cannot be resized as long as another one refers to it
        while place and owner >= 0:
            one = of[owner]
            one.storages[place] = size
            one.shown += shown
            owner = parents[owner]
    for one in of.values():
        one.bytes += sum(one.storages.values())
    # What stands in for a queue's buffer is ours: backlog.py tells of it.
    heavy = [one for one in of.values() if one.bytes >= least and not _is_ours(type(one.spot[0]))]
    heavy.sort(key=lambda one: -one.bytes)
    return {paths.name(one.spot): one for one in reversed(heavy[:MOST_NAMED])}


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
