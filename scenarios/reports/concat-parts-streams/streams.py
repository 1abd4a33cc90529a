"""Streams of content parts: asynchronous iterators that can be split and concatenated"""

import asyncio


class ProcessorPart:
    def __init__(self, data, mimetype, **metadata):
        self.data, self.mimetype, self.metadata = data, mimetype, metadata


async def _stream_outputs(content, queue):
    async for part in content:
        queue.put_nowait(part)
    queue.put_nowait(None)


async def concat(*contents):
    """The parts of all contents, in their order; all of them are started at once"""
    queues = [asyncio.Queue() for _ in contents]
    tasks = [asyncio.create_task(_stream_outputs(*pair)) for pair in zip(contents, queues)]
    for task, queue in zip(tasks, queues):
        while (part := await queue.get()) is not None:
            yield part
        await task
