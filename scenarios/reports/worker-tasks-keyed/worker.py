"""A worker of a docket: runs the executions that it reads from the stream, a few at a time"""

import asyncio
import dataclasses
import sys
import time

import numpy as np
from wire import Client

CONCURRENCY, TASK_S = 4, 0.12


@dataclasses.dataclass
class Execution:
    key: str
    function: str
    args: tuple
    started: float = 0.0
    result: object = None


def deskew(page, tilt):
    """The shift of rows that makes the lines of a page sharpest"""
    end, best, tried = time.monotonic() + TASK_S, (0.0, 0), 0
    rows = page.astype(np.float32)
    while time.monotonic() < end:
        shift = (tried * 3 + tilt) % 41 - 20
        steps = (np.arange(rows.shape[1]) * shift) // rows.shape[1]
        moved = rows[(np.arange(0, rows.shape[0], 8)[:, None] + steps) % rows.shape[0], np.arange(rows.shape[1])]
        best = max(best, (float(moved.mean(1).var()), shift))
        tried += 1
    return best


FUNCTIONS = {"deskew": deskew}


class Worker:
    def __init__(self, docket, client):
        self.docket, self.client = docket, client
        self._tasks_by_key, self.done = {}, 0

    def cancel(self, key):
        """Cancels an execution that is under way here"""
        if task := self._tasks_by_key.get(key):
            task.cancel()

    async def _execute(self, execution):
        execution.started = time.monotonic()
        execution.result = await asyncio.to_thread(FUNCTIONS[execution.function], *execution.args)
        return execution

    async def _finish(self, task, number):
        execution = task.result()
        self._tasks_by_key.pop(task.get_name(), None)
        self.done += 1
        if self.done % 100 == 0:
            took = time.monotonic() - execution.started
            print(f"{self.done} done, {execution.key}: {execution.result[1]} in {took:.2f} s", flush=True)
        await self.client.call("acknowledge", number)

    async def run_until_closed(self):
        active, closed = {}, False
        while active or not closed:
            if len(active) < CONCURRENCY and not closed:
                read = await self.client.call("read", CONCURRENCY - len(active))
                closed = not read
                for number, fields in read:
                    execution = Execution(**fields)
                    name = f"{self.docket} - task:{execution.key}"
                    task = asyncio.create_task(self._execute(execution), name=name)
                    self._tasks_by_key[execution.key] = task
                    active[task] = number
            if active:
                finished, _ = await asyncio.wait(active, return_when=asyncio.FIRST_COMPLETED)
                for task in finished:
                    await self._finish(task, active.pop(task))


async def main():
    worker = Worker("scans", await Client.connect(int(sys.argv[1])))
    await worker.run_until_closed()
    print(f"the docket is closed after {worker.done} executions", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
