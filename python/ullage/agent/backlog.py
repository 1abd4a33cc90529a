"""How many items wait in a queue, told each time they have become twice as many and weigh something.

Loaded with the first module of queues that a program imports. The surprise: nothing stands between a program and its
queue but the type of the deque in it; whoever reads it finds a deque.
"""

from _collections import deque
from _weakref import ref

import _ullage_agent as agent
import _ullage_common as common
import _ullage_kinds as types
from _ullage_common import monotonic

_queues = 0  # queues told of
_told = []  # weak references to what waits in them
_FIRST_BACKLOG = 16  # items
_HEAVY_BACKLOG = 4 << 20


class Backlog(deque):
    """Tells of its items when they have become twice as many as before, and weigh something: python/agent asks for
    `most` after each `append`."""


def _watched(of, maxsize):
    items = Backlog()
    items.of, items.maxsize, items.most, items.number, items.made = of, maxsize, _FIRST_BACKLOG, None, monotonic()
    return items


def _tell_backlog(_handled, arguments, _keywords):
    global _queues
    items, item = arguments
    number = len(items)
    items.most = 2 * number
    weight = common.load("weigh").weigh(item, 300)
    if sum(weight.values()) * number < _HEAVY_BACKLOG:
        return
    if items.number is None:
        _queues += 1
        items.number, items.first = _queues, number
        _told.append(ref(items))
    agent.send(
        {
            "kind": "backlog",
            "number": items.number,
            "of": items.of,
            "items": number,
            "maxsize": items.maxsize,
            "item": weight,
            "age_s": monotonic() - items.made,
        }
    )


def waiting():
    """What waits in the queues that were told of and have become longer since: in a pool of objects these may grow."""
    found = [known() for known in _told]
    return [items for items in found if items is not None and len(items) >= 2 * items.first]


Backlog.append = common.native.hook(deque.append, _tell_backlog, 2)


def watch(owner, made_by, attribute, of, bound=""):
    """Watches the deque that a method of a queue's type makes; `bound`: its attribute for the most that it takes. It
    returns before anything is put into it."""
    original = getattr(owner, made_by, None)
    if original is None:
        return

    def made(_handled, arguments, _keywords):
        # Of the program's own type, it may have code for what it is asked.
        names = types.attributes_of(arguments[0])
        if names is not None and type(dict.get(names, attribute)) is deque:
            maxsize = dict.get(names, bound)
            bounded = type(maxsize) is int and 0 < maxsize < 2**31 - 1
            dict.__setitem__(names, attribute, _watched(of, maxsize if bounded else None))

    setattr(owner, made_by, common.native.hook(original, made, 1))
