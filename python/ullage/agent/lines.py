"""Do tasks of asyncio that wait in a container stand in a line, or does each of them serve somebody?

By what they wait for: who is in a line acquires something, waits for an executor's thread, or has not begun; who serves
a client, a connection or a queue of its own waits until something comes. A request may wait for its reply so, too: then
the line moves, and many of those that waited at the census before have ended.
"""

from _weakref import ref
from itertools import islice

import _ullage_contents as contents
import _ullage_kinds as types
import _ullage_paths as paths

MOST, LEAST = 64, 8  # tasks of a container that stand for all
LONG = 500_000  # elements that are gone over, some ms
MOVED = 0.1  # of those that waited before
SERVING = " (serving)"
_WAITS = "_asyncio.Task" + contents.PENDING


class Lines:
    def __init__(self):
        self._before = {}  # id of a container -> weak references to tasks that waited in it
        self._now = {}

    def element(self, container, element):
        """What its elements are called: those of a line stay pending."""
        if contents.PENDING not in element or id(type(container)) not in paths.OF_CONTAINERS:
            return element
        if _most_are_done(container, element.partition(contents.PENDING)[0]):
            return element.replace(contents.PENDING, "", 1)
        if not element.startswith(_WAITS):
            return element
        tasks = [task for task in paths.some(container, type(container), MOST) if _is_pending(task)]
        self._now[id(container)] = [ref(task) for task in tasks]
        before = [one() for one in self._before.get(id(container), ())]
        ended = [task for task in before if task is None or not _is_pending(task)]
        serve = [task for task in tasks if types.waits_for_work(task)]
        if len(before) >= LEAST and len(ended) >= MOVED * len(before) or 2 * len(serve) <= len(tasks):
            return element
        return element.replace(contents.PENDING, SERVING)

    def next(self):
        """Nothing is known any more of a container that was not asked for since."""
        self._before, self._now = self._now, {}


def _most_are_done(container, kind):
    """The newest ones, which are pending, may weigh most. Of a container of containers nothing is said."""
    try:
        values = dict.values(container) if id(type(container)) in paths.OF_DICTS else container
        apart = max(1, len(values) // MOST)
        some = list(islice(values, 0, None, apart)) if len(values) < LONG else ()
    except RuntimeError:  # another thread changed it
        return False
    some = [one for one in some if types.type_name(type(one)) == kind]
    return bool(some) and 2 * len([one for one in some if types.waits(one, type(one))]) < len(some)


def _is_pending(value):
    return types.is_task(type(value)) and types.waits(value, type(value))
