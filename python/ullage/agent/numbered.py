"""Is a dict a record of what came, by the number of a step, or one in which code looks first whether a key is there?

A record has numbers one after the other for keys, and no code asks whether it has one. A cache of a dataset has such
keys too where it is read in order: `if index not in self.cache`.
"""

from itertools import islice

import _ullage_paths as paths
import _ullage_queues as queues
import _ullage_steps as steps_of
from _ullage_common import thread_time

LEAST, ENDS = 8, 16  # entries
FAR = 8  # instructions between a name and what is done with it
LONGEST = 2000  # bytes of code that are taken apart at a time
TAKEN_S = 0.004
_ASKS = ("get", "setdefault", "pop")


def is_record(entries, spot):
    """False also where no code was found that adds to it."""
    if spot is None or not steps_of.names() or id(type(entries)) not in paths.OF_DICTS or not _is_numbered(entries):
        return False
    adds, until = False, thread_time() + TAKEN_S
    for code, last in paths.codes_with(spot):
        if thread_time() > until:
            return False
        if len(code.co_code) > LONGEST or not paths.is_plain(code):
            # Not taken apart, but for whether it could ask at all.
            if _may_contain(code) or any([name in _ASKS for name in code.co_names]):
                return False
            continue
        stores, asks, reads = _uses(code, last)
        if asks or reads and stores:
            return False
        adds = adds or stores
    return adds


def _may_contain(code):
    opnames = steps_of.names()
    return "CONTAINS_OP" in [opnames[one] for one in set(code.co_code[::2])]


def _is_numbered(entries):
    """In order, and as far from each other everywhere."""
    try:
        # Not an OrderedDict's own, which look each value up by the hash of its key.
        first = list(islice(dict.__iter__(entries), ENDS))
        newest = list(islice(dict.__reversed__(entries), ENDS))
    except RuntimeError:  # another thread was there
        return False
    if min(len(first), len(newest)) < LEAST or not all([type(key) is int for key in first + newest]):
        return False
    step = first[1] - first[0]
    even = all([after - before == step for before, after in zip(first, first[1:])])
    even = even and all([before - after == step for before, after in zip(newest, newest[1:])])
    return even and step > 0 and newest[0] - first[0] == step * (len(entries) - 1)


def _uses(code, name):
    """(whether it stores by a key, asks whether a key is there, reads by a key) in what has this name."""
    stores = asks = reads = False
    steps = steps_of.of(code)
    for place, step in enumerate(steps):
        if not queues._loads(step, {name}):
            continue
        following = steps[place + 1 : place + FAR]
        if len(following) > 1 and _is_method(following[0], _ASKS):
            asks = asks or not _is_text(following[1])
        if following and _is_method(following[0], ("keys",)):
            asks = asks or any([one.opname == "CONTAINS_OP" for one in following[1:4]])
        # What is pushed between it and the end of an expression: a key is one thing, a container and a key are two.
        pushed = 1 if type(step.argval) is tuple and step.argval[0] == name else 0
        for number, after in enumerate(following):
            if after.opname == "STORE_SUBSCR":
                stores = stores or pushed == 1
            elif after.opname == "CONTAINS_OP":
                # A text is asked of another dict that has this name: its keys are numbers.
                asks = asks or number == 0 and not any([_is_text(one) for one in steps[max(0, place - 2) : place]])
            elif after.subscripts:
                reads = reads or pushed == 1 and not stores  # what it has just stored it may read
            elif after.opname.startswith("LOAD_"):
                if after.opname not in queues._METHODS:
                    pushed += 2 if type(after.argval) is tuple else 1
                continue
            elif after.opname in queues._CALLS and type(after.arg) is int and after.arg < pushed:
                pushed -= after.arg
                continue
            elif after.opname.startswith("BINARY_"):
                pushed -= 1
                continue
            elif after.opname in ("COPY", "DUP_TOP_TWO", "SWAP", "ROT_THREE"):
                continue
            break
    return stores, asks, reads


def _is_text(step):
    return step.opname == "LOAD_CONST" and type(step.argval) is str


def _is_method(step, names):
    return step.opname in queues._METHODS and step.argval in names
