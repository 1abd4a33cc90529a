"""Do tasks of asyncio that wait in a container stand in a line, or does each of them serve somebody?

A line moves: of those that waited before some have ended. Where none has, though more came, each is at work for a
client, a connection, a queue of its own, and stays until somebody ends it; unless its own functions say that it waits
for room.
"""

from _weakref import ref

import _ullage_contents as contents
import _ullage_kinds as types
import _ullage_paths as paths

MOST, LEAST = 128, 4  # tasks of a container that stand for all
NONE_ENDED = " (none ended)"
_KEPT = "_asyncio.Task" + contents.PENDING


class Lines:
    def __init__(self):
        self._before = {}  # id of a container -> weak references to tasks that waited in it
        self._now = {}

    def element(self, container, element):
        """What its elements are called: those of a line stay pending."""
        if not element.startswith(_KEPT):
            return element
        tasks = [task for task in paths.some(container, type(container), MOST) if _is_pending(task)]
        self._now[id(container)] = [ref(task) for task in tasks]
        before = [one() for one in self._before.get(id(container), ())]
        moved = len(before) < LEAST or not all([task is not None and _is_pending(task) for task in before])
        if moved or 2 * sum([types.waits_for_room(task) for task in before]) >= len(before):
            return element
        return element.replace(contents.PENDING, NONE_ENDED)

    def next(self):
        """Nothing is known any more of a container that was not asked for since."""
        self._before, self._now = self._now, {}


def _is_pending(value):
    return types.waits(value, type(value)) and types.is_task(type(value))
