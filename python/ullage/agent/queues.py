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
_NAMES = ("LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_DEREF", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_FAST_LOAD_FAST")
_NAMES += ("LOAD_FAST_BORROW_LOAD_FAST_BORROW", "LOAD_FAST_CHECK", "STORE_FAST_LOAD_FAST")
_MOVES = ("SWAP", "ROT_TWO", "ROT_THREE")
_ENDS_EXPRESSION = ("STORE_", "POP_", "JUMP_", "RETURN_", "FOR_ITER", "TO_BOOL")
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
    waits for them in order, by a number that it counts or is asked for: what is there came before one that is late)."""
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
    taken, in_order, codes = False, False, []
    for code, last in paths.codes_with(spot):
        # Names first: to take code apart costs a thousand times as much.
        if thread_time() > until:
            break
        codes.append((code, last))
        if in_order or not _mentions(code, word) or len(code.co_code) > LONGEST:
            continue
        if takes(code, {last}):
            taken = True
            in_order = word != "popleft" and _waits_in_order(steps_of.of(code), last, word)
            if word == "popleft":
                break
    if taken and word == "pop" and _is_left_behind(container, before):
        return False, False
    return taken, in_order and not _is_numbered_by(codes, until)


def _is_numbered_by(codes, until):
    """Whoever adds to it counts as well: it is a queue, and none of its elements is late."""
    for code, name in codes:
        if thread_time() > until:
            return True
        if len(code.co_code) <= LONGEST and paths.is_plain(code):
            steps = steps_of.of(code)
            counted = _counted(steps)
            for place, step in enumerate(steps):
                if step.opname == "STORE_SUBSCR" and place and _operand(steps, place)[0] in counted:
                    if any([_loads(one, {name}) for one in steps[max(0, place - 4) : place]]):
                        return True
    return False


def _waits_in_order(steps, name, word):
    """`while self.next in self.early: use(self.early.pop(self.next)); self.next += 1`, also for each of a `range`, or
    of a heap `while heap and heap[0][0] == following: heappop(heap); following += 1`; or where it stores others until
    the one that it was asked for is there."""
    counted = _counted(steps)
    if word != "pop":
        return _compares_least(steps, _aliases(steps, {name}), counted)
    if _stores_until(steps, name):
        return True
    asked = {_asked(steps, place, name) for place, step in enumerate(steps) if step.opname == "CONTAINS_OP"}
    for place in range(1, len(steps)):
        step = steps[place]
        if step.opname not in _METHODS or step.argval != "pop" or not _ends_with(steps[place - 1], name):
            continue
        key, at = _first_operand(steps, place + 1)
        with_default = at < len(steps) and steps[at].opname not in _CALLS
        ends = at + with_default < len(steps) and steps[at + with_default].opname in _CALLS
        # Who counts first hands out numbers, and takes back what it had handed out.
        if ends and (with_default or key in asked) and counted.get(key, -1) > place:
            return True
    return False


def _stores_until(steps, name):
    """`while number not in early: found, value = queue.get(); early[found] = value`, and `early.pop(number)`."""
    wanted, stored, waited = set(), set(), set()
    for place, step in enumerate(steps):
        if "BACKWARD" in step.opname or step.opname == "JUMP_ABSOLUTE":
            waited |= stored
        if step.opname == "CONTAINS_OP" and step.arg & 1:
            asked = _asked(steps, place, name)
            waited |= stored & {asked}  # it asks again: the end of a loop
            wanted.add(asked)
        elif step.opname == "STORE_SUBSCR" and any([_loads(one, {name}) for one in steps[max(0, place - 4) : place]]):
            key = _operand(steps, place)[0]
            stored.update([one for one in wanted if one != key])
        elif step.opname in _METHODS and step.argval == "pop" and place and _ends_with(steps[place - 1], name):
            if _first_operand(steps, place + 1)[0] in waited - {None}:
                return True
    return False


def _compares_least(steps, names, counted):
    """`heap[0][0] == following`, in whichever order."""
    for place, step in enumerate(steps):
        if not step.equals:  # a timer asks for less, or equal
            continue
        begin = place
        while begin and not steps[begin - 1].opname.startswith(_ENDS_EXPRESSION):
            begin -= 1
        compared = steps[begin:place]
        reads = any([one.subscripts for one in compared]) and any([_loads(one, names) for one in compared])
        sides = _operand(steps, place)[0], _first_operand(steps, begin)[0]
        if reads and any([counted.get(side, -1) > place for side in sides]):
            return True
    return False


def _aliases(steps, names):
    """With locals that are set from one of them."""
    names = set(names)
    for step, after in zip(steps, steps[1:]):
        if _loads(step, names) and after.opname.startswith(("STORE_FAST", "STORE_DEREF")):
            names.add(after.argval[0] if type(after.argval) is tuple else after.argval)
    return names


def _asked(steps, place, name):
    """Of `key in name` the key."""
    if type(steps[place - 1].argval) is tuple and steps[place - 1].argval[-1] == name:
        return "", steps[place - 1].argval[0]
    operand, begin = _operand(steps, place)
    return _operand(steps, begin)[0] if operand is not None and operand[1] == name else None


def _operand(steps, place):
    """((what it is an attribute of, name), where its steps begin) of what is loaded last before `place`; None where
    that has no name."""
    if place < 1:
        return None, place
    last = steps[place - 1]
    if last.opname == "LOAD_ATTR" and place > 1 and steps[place - 2].opname in _NAMES:
        owner = steps[place - 2].argval
        return (owner[-1] if type(owner) is tuple else owner, last.argval), place - 2
    if last.opname in _NAMES:
        return ("", last.argval[-1] if type(last.argval) is tuple else last.argval), place - 1
    return None, place


def _first_operand(steps, place):
    """The same of what is loaded from `place` on, and where its steps end."""
    if place >= len(steps) or steps[place].opname not in _NAMES:
        return None, place
    first = steps[place].argval
    if type(first) is tuple:  # and what follows it
        return ("", first[0]), place
    if place + 1 < len(steps) and steps[place + 1].opname == "LOAD_ATTR":
        return (first, steps[place + 1].argval), place + 2
    return ("", first), place + 1


def _counted(steps):
    """Where the code adds 1 to a name, or goes on to the next of a `range`: by (what it is an attribute of, name)."""
    found = {}
    for place, step in enumerate(steps):
        if step.opname.startswith(("STORE_FAST", "STORE_DEREF", "STORE_GLOBAL", "STORE_NAME", "STORE_ATTR")):
            stored = step.argval[0] if type(step.argval) is tuple else step.argval
            end = place
            while end and steps[end - 1].opname in _MOVES:
                end -= 1
            if step.opname == "STORE_ATTR" and end and steps[end - 1].opname in _NAMES:
                end -= 1  # of `self.number = self.number + 1` the first one
            if _is_sum(steps, end):
                begin = end - 2
                if step.opname == "STORE_ATTR" and steps[begin - 1].opname == "LOAD_ATTR":
                    owners = [one.argval for one in steps[max(0, begin - 3) : begin - 1] if one.opname in _NAMES]
                    name = (owners[-1][-1] if type(owners[-1]) is tuple else owners[-1]) if owners else None
                    known = (name, steps[begin - 1].argval)
                else:
                    known = _operand(steps, begin)[0]
                if known is not None and known[1] == stored:
                    found[known] = max(found.get(known, -1), place)
        elif step.opname == "FOR_ITER" and place + 1 < len(steps) and steps[place + 1].opname.startswith("STORE_FAST"):
            made = steps[max(0, place - BACK) : place]
            stored = steps[place + 1].argval
            if any([one.opname in _NAMES and one.argval in ("range", "count") for one in made]):
                # It does so after all that is done with one.
                found["", stored[0] if type(stored) is tuple else stored] = len(steps)
    return found


def _is_sum(steps, end):
    """Of what was loaded before, and 1."""
    if end < 3:
        return False
    added, how = steps[end - 2], steps[end - 1]
    is_one = added.opname in ("LOAD_CONST", "LOAD_SMALL_INT") and type(added.argval) is int and added.argval == 1
    return is_one and how.opname in _SUMS and (how.opname != "BINARY_OP" or how.arg in _ADDS)


def _ends_with(step, name):
    """It loads this name last."""
    loaded = step.argval[-1] if type(step.argval) is tuple else step.argval
    return "LOAD_" in step.opname and step.opname != "LOAD_CONST" and loaded == name


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
    steps = steps_of.of(code)
    names = _aliases(steps, names)
    for place, step in enumerate(steps):
        following = steps[place + 1 : place + FAR]
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
