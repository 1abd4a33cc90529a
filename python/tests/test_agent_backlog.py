"""What the agent tells of queues that fill, and of iterators that keep what they have seen."""

import sys

import pytest

from receiver import HEARD, several, watched
from test_agent_transparency import same

HEAD = (
    HEARD
    + """
import asyncio, itertools, multiprocessing, queue, sys, threading, time
import multiprocessing.pool
ITEM = b"x" * (1 << 20)
"""
)

QUEUES = {
    "multiprocessing.Queue": "q = multiprocessing.Queue()\nfor _ in range(70): q.put(bytes(ITEM))\nq.cancel_join_thread()",
    "queue.Queue": "q = queue.Queue()\nfor _ in range(70): q.put(ITEM)",
    "asyncio.Queue": """
async def main():
    q = asyncio.Queue()
    for _ in range(70):
        q.put_nowait(ITEM)
asyncio.run(main())""",
    "Pool.imap": """
with multiprocessing.get_context("fork").Pool(1) as pool:
    results = pool.imap(bytes, [1 << 20] * 70)
    while not heard():
        time.sleep(0.01)
    # A pool that is ended while its results arrive may wait for ever.
    assert len(list(results)) == 70""",
}


@pytest.mark.parametrize("kind", list(QUEUES))
def test_a_queue_tells_each_time_that_it_is_twice_as_long(python, script, kind):
    _, receiver = watched([python, script(HEAD + QUEUES[kind])], until=several(2, "backlog", of=kind))
    told = [message for message in receiver.of("backlog") if message["of"] == kind]
    assert [message["items"] for message in told][:2] == [16, 32], receiver.messages
    assert sum(told[0]["item"].values()) == pytest.approx(1 << 20, rel=0.01)
    assert "maxsize" not in told[0] and told[0]["number"] == told[1]["number"]


def test_bounds_are_told_and_small_items_are_not(python, script):
    program = """
q = queue.Queue(maxsize=40)
for _ in range(40): q.put(ITEM)
small = queue.Queue()
for n in range(5000): small.put(n)
"""
    _, receiver = watched([python, script(HEAD + program)])
    assert {message["maxsize"] for message in receiver.of("backlog")} == {40}


def test_queues_work_as_they_do_without_the_agent(python, script):
    program = """
class Stack(queue.LifoQueue):
    pass

class Mine(queue.Queue):
    def _init(self, maxsize):
        super()._init(maxsize)
        self.queue.extend([1, 2])

for kind in (queue.Queue, Stack, queue.PriorityQueue, Mine):
    q = kind(3)
    for n in (3, 1):
        try:
            q.put(n, block=False)
        except queue.Full:
            print("full")
    print(kind.__name__, list(q.queue), q.qsize(), q.get(), q.get())
print(queue.Queue._init.__name__, multiprocessing.queues.Queue._reset.__qualname__)
q = multiprocessing.Queue(2)
q.put("a")
print(q.get())
try:
    q.put(lambda: 0); q.close(); q.join_thread()
    q.put(1)
except ValueError as error:
    print(type(error).__name__)
queue.Queue(1).put(1, False, bad=1)
"""
    same([python, script(HEAD + program)])


CYCLE = """
from torch.utils.data import DataLoader
if __name__ == "__main__":
    workers = {{"num_workers": 1, "multiprocessing_context": "fork"}} if {} else {{}}
    loader = DataLoader(range(40), batch_size=1, **workers)
    batches = {}(loader)
    for _ in range(100):
        next(batches)
"""


@pytest.mark.parametrize("workers", [pytest.param(0, marks=pytest.mark.thorough), 1])
@pytest.mark.parametrize("kind", ["cycle", "tee", "forever"])
def test_what_iterators_keep_is_told_at_the_end(script, kind, workers):
    pytest.importorskip("torch")
    head = "import itertools\ndef forever(loader):\n    while True:\n        yield from loader\n"
    head += "def tee(loader):\n    global slow\n    fast, slow = itertools.tee(forever(loader))\n    return fast\n"
    name = "itertools.cycle" if kind == "cycle" else kind
    _, receiver = watched([sys.executable, script(head + CYCLE.format(workers, name))])
    bye = [message for message in receiver.of("bye") if "kept_by_iterators" in message]
    expected = {"cycle": [("cycle", 40)], "tee": [("tee", 100)], "forever": []}[kind]
    assert [(kind, message["kept_by_iterators"][kind]) for message in bye] == expected
