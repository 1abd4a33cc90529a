"""Graphs of nodes that read and write channels in supersteps, with a checkpoint after each of them"""

import asyncio
import time
import uuid


class AsyncBackgroundExecutor:
    def __init__(self):
        self.tasks = set()

    def submit(self, coroutine):
        task = asyncio.get_running_loop().create_task(coroutine)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task


class AsyncPregelLoop:
    def __init__(self, nodes, checkpointer, config, durability="async"):
        self.nodes, self.checkpointer, self.config, self.durability = nodes, checkpointer, config, durability
        self.executor = AsyncBackgroundExecutor()
        self.channels, self.step = {}, -1
        self._put_checkpoint_fut = None

    async def run(self, inputs, first, deadline):
        """Until a node names no next one, or the time is up"""
        self.channels.update(inputs)
        await self._put_checkpoint({"source": "input"})
        name = first
        while name is not None and time.monotonic() < deadline:
            self.step += 1
            # nodes are ordinary functions: they run in a thread
            writes, following = await asyncio.to_thread(self.nodes[name], dict(self.channels))
            self.channels.update(writes)
            await self._put_checkpoint({"source": "loop", "node": name})
            name = following
        return dict(self.channels)

    async def _put_checkpoint(self, metadata):
        checkpoint = {"id": uuid.uuid4().hex, "step": self.step, "channel_values": dict(self.channels)}
        self._put_checkpoint_fut = self.executor.submit(
            self._checkpointer_put_after_previous(self._put_checkpoint_fut, self.config, checkpoint, metadata)
        )
        if self.durability == "sync":
            await self._put_checkpoint_fut

    async def _checkpointer_put_after_previous(self, previous, config, checkpoint, metadata):
        if previous is not None:
            await previous
        await self.checkpointer.aput(config, checkpoint, metadata)
