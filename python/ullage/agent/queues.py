"""Is a collection that grows a queue that is emptied too slowly? Its ends say so, from one census to the next."""

from _weakref import ref

import _ullage_common as common
import _ullage_kinds as types
import _ullage_paths as paths
import _ullage_slots as slots

ENDS = 16  # elements


class Ends:
    """Of a list or deque: addresses of its first and of its last elements. `which`: refers weakly to the deque."""

    __slots__ = ("first", "last", "which")

    def __init__(self, first, last, which):
        self.first, self.last, self.which = first, last, which


def ends(container):
    """None of others, and where that cannot be told."""
    kind = type(container)
    if kind is not paths.deque and (kind is not list or not slots.complete(container)):
        return None
    found = common.native.ends(container, ENDS)
    return Ends(*found, ref(container) if kind is paths.deque else None) if found is not None else None


def is_drained(container, before):
    """The first elements that it had have left it: what grows all the same is a queue that is emptied too slowly, not a
    collection. Of one that is not known to be the same, the last are still there, or it may be made anew each time."""
    kind = type(container)
    if before is None or kind is not paths.deque and (kind is not list or not slots.complete(container)):
        return False
    same = before.which is not None and before.which() is container
    first, last = [common.native.still(container, some) for some in (before.first, before.last)]
    return first is not None and 2 * first < len(before.first) and (same or 2 * last > len(before.last))


def is_taken_from(container, spot):
    """Code of the program takes elements from the left of a deque of this name, though it may not come to it, or put
    them back: a queue, not a collection."""
    if type(container) is not paths.deque or container.maxlen is not None or spot is None:
        return False
    return any([_takes(code) for code, _ in paths.codes_with(spot)])


def _takes(code):
    inside = [one for one in code.co_consts if type(one) is types.CodeType]  # a comprehension's, up to CPython 3.11
    return "popleft" in code.co_names or any([_takes(one) for one in inside])
