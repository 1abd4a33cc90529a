"""A queue of sound that is bounded by its length in seconds"""

import asyncio
import collections

import numpy as np


class AudioQueue:
    def __init__(self, max_seconds, rate):
        self.chunks, self.samples = collections.deque(), 0
        self.limit, self.peak = int(max_seconds * rate), 0
        self.changed = asyncio.Condition()

    async def put(self, chunk):
        """Waits until there is room; None is the end of the sound"""
        size = 0 if chunk is None else len(chunk)
        async with self.changed:
            await self.changed.wait_for(lambda: self.samples + size <= self.limit)
            self.chunks.append(chunk)
            self.samples += size
            self.peak = max(self.peak, self.samples)
            self.changed.notify_all()

    async def get(self, most):
        """What waits, up to so many samples; None at the end"""
        taken = []
        async with self.changed:
            await self.changed.wait_for(lambda: self.chunks)
            while self.chunks and self.chunks[0] is not None and sum(map(len, taken)) < most:
                taken.append(self.chunks.popleft())
                self.samples -= len(taken[-1])
            self.changed.notify_all()
        return np.concatenate(taken) if taken else None
