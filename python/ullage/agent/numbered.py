"""Is a dict a record of what came, by the number of a step, or one in which code looks first whether a key is there?

A record has numbers one after the other for keys, and the code that adds to it asks nothing of it. A cache of a dataset
has such keys too where it is read in order: `if index not in self.cache`.
"""

import sys
from itertools import islice

import _ullage_common as common  # noqa: F401
import _ullage_paths as paths
import _ullage_queues as queues
from _ullage_common import thread_time

LEAST, ENDS = 8, 16  # entries
FAR = 8  # instructions between a name and what is done with it
_LOOKS = ("get", "setdefault", "has_key")


def is_record(entries, spot, until):
    """False also where no code was found that adds to it."""
    dis = sys.modules.get("dis")
    if dis is None or spot is None or id(type(entries)) not in paths.OF_DICTS or not _is_numbered(entries):
        return False
    adds = False
    for code, last in paths.codes_with(spot):
        if thread_time() > until:
            return False
        if len(code.co_code) <= queues.LONGEST and paths.is_plain(code):
            stores, looks = _uses(dis, code, last)
            if looks and stores:
                return False
            adds = adds or stores
    return adds


def _is_numbered(entries):
    """In order, and as far from each other everywhere."""
    if len(entries) < LEAST:
        return False
    try:
        # Not an OrderedDict's own, which look each value up by the hash of its key.
        first = list(islice(dict.__iter__(entries), ENDS))
        newest = list(islice(dict.__reversed__(entries), ENDS))
    except RuntimeError:  # another thread was there
        return False
    if not all([type(key) is int for key in first + newest]):
        return False
    step = first[1] - first[0]
    even = all([after - before == step for before, after in zip(first, first[1:])])
    even = even and all([before - after == step for before, after in zip(newest, newest[1:])])
    return even and step > 0 and newest[0] - first[0] == step * (len(entries) - 1)


def _uses(dis, code, name):
    """(whether it stores by a key, whether it looks up by one) in what has this name."""
    stores = looks = False
    steps = [step for step in dis.get_instructions(code) if step.opname not in queues._NO_STEPS]
    for place, step in enumerate(steps):
        if not queues._loads(step, {name}):
            continue
        for number, after in enumerate(steps[place + 1 : place + FAR]):
            if after.opname == "STORE_SUBSCR":
                stores = True
            elif number == 0 and (after.opname == "CONTAINS_OP" or after.argval in _LOOKS):
                looks = True
            elif after.opname == "BINARY_SUBSCR" or after.opname == "BINARY_OP" and "[" in after.argrepr:
                looks = True
            elif after.opname not in queues._CALLS and not after.opname.startswith(("STORE_", "POP_", "RETURN_")):
                continue
            break
    return stores, looks
