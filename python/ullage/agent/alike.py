"""Which of many small holders are one? An attribute of a class whose every instance holds a part of what came, as each
connection of a pool does.
"""

import _ullage_kinds as types
import _ullage_paths as paths

_SUMMED = ("length", "bytes", "own_bytes", "more_bytes", "hidden_bytes")


def together(found, left):
    """One attribute of many instances, each of which holds a small part, counts as a whole; `left`: of which there was
    no time to weigh all, by how many elements they grew."""
    groups = {}
    for one in found:
        groups.setdefault(_attribute(one[2], one[0]["type"], one[0]["nested"]) or id(one[1]), []).append(one)
    added = dict([(key, 0) for key, some in groups.items() if type(key) is tuple and len(some) > 1])
    numbers = dict([(key, len(groups[key])) for key in added])
    for value, _, base, length, nested, spot in left if added else ():
        key = _attribute(spot, types.type_name(type(value)), nested)
        if key in added:
            added[key] += length - base[0]
            numbers[key] += 1
    all_of_them = []
    for key, some in groups.items():
        if key in added:
            # By a name that begins in a running function, which works with it.
            inside, value, spot = max(some, key=lambda one: paths.path(one[2])[1].code is not None)
            sums = dict([(part, sum([one[0][part] or 0 for one in some])) for part in (*_SUMMED, "before")])
            more = sums["length"] - sums["before"]
            scale = (more + added[key]) / max(1, more)
            sums.update([(part, int(sums[part] * scale)) for part in _SUMMED])
            sums["before"] = int(sums["before"] * scale) if inside["before"] is not None else None
            sums["of_bytes"] = max([one[0]["of_bytes"] for one in some])
            some = [(dict(inside, alike=numbers[key], **sums), value, spot)]
        all_of_them += some
    all_of_them.sort(key=lambda one: -one[0]["more_bytes"] - one[0]["hidden_bytes"])
    return all_of_them


def _attribute(spot, kind, nested):
    """The class whose attribute it is, that attribute and its type; None of what is no attribute of an instance."""
    if spot is None or nested:
        return None
    name, _, owner, _ = paths.path(spot)
    return (owner, name.rpartition(".")[2], kind) if owner else None
