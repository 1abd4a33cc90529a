"""Which of many small holders are one? An attribute of a class whose every instance holds a part of what came, as each
connection of a pool does.
"""

import _ullage_kinds as types
import _ullage_paths as paths

_SUMMED = ("length", "bytes", "own_bytes", "more_bytes", "hidden_bytes")
_SMALL = types.ids(bool, int, float, complex)  # one object may stand for many equal ones


def together(found, others, known):
    """One attribute of many instances, each of which holds a small part, counts as a whole. `others`: (container, its
    spot, by how many elements it grew, whether it was weighed and found light) of those that are not `found`; where
    there was no time to weigh one, it weighs as those that were. `known`: dicts by ids of containers that were there
    before; instances that come and go do not grow."""

    def stays(value):
        return any([id(value) in some for some in known])

    groups = {}
    for one in found:
        key = _attribute(one[1], one[2]) if stays(one[1]) and not one[0]["nested"] else None
        groups.setdefault(key or id(one[1]), []).append(one)
    several = [key for key, some in groups.items() if type(key) is tuple and len(some) > 1 and not _share(some)]
    more = dict([(key, [0, 0]) for key in several])  # elements that the light ones grew by, and those not weighed
    numbers = dict([(key, len(groups[key])) for key in several])
    wanted = {key[:2] for key in several}
    for value, spot, grew, light in others if several else ():
        key = _attribute(value, spot, wanted) if stays(value) else None
        if key in more:
            more[key][0 if light else 1] += grew
            numbers[key] += 1
    result = []
    for key, some in groups.items():
        result += [_sum(some, *more[key], numbers[key])] if key in more else some
    result.sort(key=lambda one: -one[0]["more_bytes"] - one[0]["hidden_bytes"])
    return result


def _sum(some, light, left, number):
    # By a name that begins in a running function, which works with it; a light one says nothing of the others.
    heavy = [one for one in some if 2 * _came(one) >= _came(some[0])]
    inside, value, spot = max(heavy, key=lambda one: paths.path(one[2])[1].code is not None)
    sums = dict([(part, sum([one[0][part] or 0 for one in some])) for part in (*_SUMMED, "before")])
    weighed = max(1, sums["length"] - sums["before"] + light)
    sums = dict([(part, int(size * (weighed + left) / weighed)) for part, size in sums.items()])
    sums["of_bytes"] = max([one[0]["of_bytes"] for one in some])
    # What several of them refer to was counted for each.
    twice = max(0, sums["more_bytes"] - sums["of_bytes"])
    for part in ("bytes", "own_bytes", "more_bytes"):
        sums[part] = max(inside[part], sums[part] - twice)
    # Results of one step share its graph, and each of them keeps all of it.
    sums["hidden_bytes"] = max(inside["hidden_bytes"], min(sums["hidden_bytes"], sums["of_bytes"] - sums["more_bytes"]))
    if inside["before"] is None:
        sums["before"] = None
    return dict(inside, alike=number, **sums), value, spot


def _came(one):
    return one[0]["more_bytes"] + one[0]["hidden_bytes"]


def _share(some):
    """Instances that list the same objects hold them once."""
    last = [id(one) for one in [_last(one[1]) for one in some] if one is not None and id(type(one)) not in _SMALL]
    return 2 * len([one for one in last if last.count(one) > 1]) > len(last)


def _last(container):
    try:
        if id(type(container)) in paths.OF_LISTS or type(container) is paths.deque:
            return container[-1]
        if id(type(container)) in paths.OF_DICTS:
            return next(reversed(dict.values(container)))
    except (IndexError, RuntimeError, StopIteration):  # another thread was there
        pass
    return None


def _attribute(value, spot, wanted=None):
    """The type of a container, the class whose attribute it is, and which; None of what is no attribute itself."""
    holder = spot[1] if spot is not None and type(spot[1]) is tuple else None
    if holder is None:
        return None
    names = None
    if paths.is_of_attributes(holder):
        names, holder = holder[0], holder[1]
    key = types.type_name(type(value)), id(type(holder[0]))
    if wanted is not None and key not in wanted:
        return None  # an instance that is asked for its attributes has a dict of them from then on
    names = paths._attributes_of(holder[0]) if names is None else names
    if names is None or issubclass(type(holder[0]), type):
        return None
    name = paths._key(names, value)
    return (*key, name) if name else None
