"""Is a collection that grows a queue that is emptied too slowly? Its ends say so, from one census to the next."""

from _weakref import ref
from itertools import islice

import _ullage_common as common
import _ullage_kinds as types
import _ullage_paths as paths
import _ullage_slots as slots
import _ullage_steps as steps_of
from _ullage_common import thread_time

ENDS = 16  # elements
FAR = 5  # instructions
BACK = 12  # instructions within which a cache puts back what it has taken out
LONGEST = 8000  # bytes of code that are taken apart at a time: some 10 ms
_METHODS = ("LOAD_ATTR", "LOAD_METHOD")
_CALLS = ("CALL", "CALL_METHOD", "CALL_FUNCTION")
_SUMS, _ADDS = ("BINARY_OP", "BINARY_ADD", "INPLACE_ADD"), (0, 13)  # Include/opcode.h: NB_ADD, NB_INPLACE_ADD
_SUBSCRIPT = ("BINARY_SUBSCR", "BINARY_OP", "LOAD_FAST", "LOAD_DEREF", "LOAD_CONST", "LOAD_SMALL_INT", "LOAD_GLOBAL")


class Ends:
    """Of a list, deque or dict: addresses of its first and its last elements. `which`: refers weakly to the deque."""

    __slots__ = ("first", "last", "which")

    def __init__(self, first, last, which):
        self.first, self.last, self.which = first, last, which


def ends(container):
    """None of others, and where that cannot be told."""
    kind = type(container)
    is_dict = id(kind) in paths.OF_DICTS
    if not is_dict and kind is not paths.deque and (kind is not list or not slots.complete(container)):
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


def is_taken_from(container, spot, before, until):
    """(whether code of the program takes elements from the left of a deque of this name, the least of a heap, or by a
    key that varies from a dict, though it may not come to it, or put them back: a queue, not a collection; whether it
    waits for them in order, by a number that it counts itself: what is there came before one that is late)."""
    if spot is None:
        return False, False
    if type(container) is paths.deque and container.maxlen is None:
        word, takes = "popleft", _takes
    elif type(container) is list:
        word, takes = "heappop", _takes_least
    elif id(type(container)) in paths.OF_DICTS:
        word, takes = "pop", _takes_by_key
    else:
        return False, False
    for code, last in paths.codes_with(spot):
        # Names first: to take code apart costs a thousand times as much.
        if thread_time() > until:
            break
        if len(code.co_code) <= LONGEST and _mentions(code, word) and takes(code, {last}):
            in_order = word != "popleft" and _waits_in_order(steps_of.of(code), last, word)
            taken = in_order or word != "pop" or not _is_left_behind(container, before)
            return taken, in_order
    return False, False


def _waits_in_order(steps, name, word):
    """`while self.next in self.early: use(self.early.pop(self.next)); self.next += 1`, or of a heap
    `while heap and heap[0][0] == following: heappop(heap); following += 1`."""
    counted = _counted(steps)
    if not counted:
        return False
    for place, step in enumerate(steps):
        if word == "pop":
            # What lies between the method and its call is the key.
            if step.opname in _METHODS and step.argval == "pop" and place and _loads(steps[place - 1], {name}):
                key = steps[place + 1 : place + FAR]
                end = next((at for at, one in enumerate(key) if one.opname in _CALLS), 0)
                if any([_loads(one, counted) for one in key[:end]]):
                    return True
        elif step.equals:  # a timer asks for less, or equal
            compared = steps[max(0, place - BACK) : place]
            first = next((at for at, one in enumerate(compared) if _loads(one, {name})), None)
            read = first is not None and any([one.subscripts for one in compared[first:]])
            if read and any([_loads(one, counted) for one in compared[first:]]):
                return True
    return False


def _counted(steps):
    """Names to which the code adds 1."""
    found = set()
    for place, step in enumerate(steps):
        if not step.opname.startswith("STORE_") or step.opname == "STORE_SUBSCR":
            continue
        stored = step.argval[0] if type(step.argval) is tuple else step.argval
        near = steps[max(0, place - FAR) : place]
        for one, added, how in zip(near, near[1:], near[2:]):
            is_one = (
                added.opname in ("LOAD_CONST", "LOAD_SMALL_INT") and type(added.argval) is int and added.argval == 1
            )
            if is_one and how.opname in _SUMS and (how.opname != "BINARY_OP" or how.arg in _ADDS):
                loaded = one.argval[-1] if type(one.argval) is tuple else one.argval
                if "LOAD_" in one.opname and one.opname != "LOAD_CONST" and loaded == stored:
                    found.add(stored)
    return found


def _is_left_behind(entries, before):
    """What came first is there as before, and what came after it was taken: nobody takes those that are left."""
    now = None if before is None else ends(entries)
    if now is None or len(before.first) < 4 or not set(before.first) <= set(now.first):
        return False
    return common.native.still(entries, before.last) != len(before.last) or _has_gaps(entries)


def _has_gaps(entries):
    """Of entries that are numbered as they come, most were taken between those that are left."""
    try:
        # Not an OrderedDict's own, which look each value up by the hash of its key.
        first, newest = next(dict.__iter__(entries)), list(islice(dict.__reversed__(entries), ENDS))
    except (RuntimeError, StopIteration):  # another thread was there
        return False
    if not all([type(key) is int for key in (first, *newest)]):
        return False
    # Offsets and the numbers of one rank of many go by larger steps, times by uneven ones. Few of the newest are gone.
    steps = sorted([after - key for key, after in zip(newest[1:], newest)])
    step = steps[len(steps) // 2] if steps else 0
    return step > 0 and newest[0] - first >= 2 * step * len(entries)


def _mentions(code, word):
    nested = [one for one in code.co_consts if type(one) is types.CodeType]
    return any([word in one.co_names for one in (code, *nested)])


def _takes_by_key(code, names):
    """`batch = self.stash.pop(number)`: what it gives is used, other than an entry's that makes room, or of which is
    only asked whether it was there, and the key is no constant as in `options.pop("name")`."""
    if not paths.is_plain(code):
        return False
    steps = steps_of.of(code)
    for place in range(len(steps) - 1):
        following = steps[place + 1]
        if _loads(steps[place], names) and following.opname in _METHODS and following.argval == "pop":
            given, varies = 0, None
            for at in range(place + 2, len(steps) - 1):
                step = steps[at]
                if step.opname in _CALLS:
                    # With more on the stack it is the call of an argument: `pop(next(iter(cache)))` makes room.
                    used = step.arg == given and varies and not _is_let_go(steps[at + 1 : at + 3])
                    if used and not any([one.opname == "STORE_SUBSCR" for one in steps[at : at + BACK]]):
                        return True
                    break
                if step.opname.startswith("LOAD_") and step.opname not in _METHODS:
                    given += 2 if type(step.argval) is tuple else 1
                    varies = step.opname not in ("LOAD_CONST", "LOAD_SMALL_INT") if varies is None else varies
                elif step.opname.startswith("BINARY_"):
                    given -= 1
                elif step.opname != "LOAD_ATTR":
                    break
    return False


def _is_let_go(steps):
    """At once, or once it was compared with None."""
    first, second = [step.opname for step in steps] + [""] * (2 - len(steps))
    # CPython 3.8 compares by COMPARE_OP.
    is_none = first == "LOAD_CONST" and steps[0].argval is None and second in ("IS_OP", "COMPARE_OP")
    return first == "POP_TOP" or is_none or first.startswith("POP_JUMP") and first.endswith("NONE")


def _takes_least(code, names):
    """`heapq.heappop(self.items)`, or the same of a local that was set from one of `names`."""
    if not paths.is_plain(code):
        return False
    names, steps = set(names), steps_of.of(code)
    for place, step in enumerate(steps):
        following = steps[place + 1 : place + FAR]
        if _loads(step, names) and following and following[0].opname.startswith(("STORE_FAST", "STORE_DEREF")):
            stored = following[0].argval
            names.add(stored[0] if type(stored) is tuple else stored)
        if "LOAD_" in step.opname and step.argval == "heappop":
            calls = [at for at, after in enumerate(following) if after.opname in _CALLS]
            # One that is thrown away makes room: the best are kept.
            used = calls and steps[place + calls[0] + 2].opname != "POP_TOP"
            if used and any([_loads(after, names) for after in following[: calls[0]]]):
                return True
    return False


def _takes(code, names, inside=False):
    """`self.items.popleft()`, `waiting[kind].popleft()`, or the same of a local that was set from one of `names`."""
    if not paths.is_plain(code):
        return False
    names, steps = set(names), steps_of.of(code)
    for place, step in enumerate(steps):
        if not _loads(step, names):
            continue
        for after in steps[place + 1 : place + FAR]:
            if after.opname in _METHODS:
                if after.argval == "popleft":
                    return True
                break
            if after.opname.startswith(("STORE_FAST", "STORE_DEREF")):
                names.add(after.argval[0] if type(after.argval) is tuple else after.argval)
            if not after.opname.startswith(_SUBSCRIPT):
                break
    # A comprehension is code of its own, up to CPython 3.11.
    nested = [one for one in code.co_consts if type(one) is types.CodeType and not inside]
    return any([_takes(one, names, inside=True) for one in nested])


def _loads(step, names):
    argument = step.argval if type(step.argval) is tuple else (step.argval,)
    return "LOAD_" in step.opname and step.opname != "LOAD_CONST" and any([one in names for one in argument])
