"""Data pipes: iterables that are chained, and forked for more than one reader"""

import collections


class IterDataPipe:
    def map(self, function):
        return Mapper(self, function)

    def batch(self, size):
        return Batcher(self, size)

    def fork(self, num_instances, buffer_size=1000):
        forker = _Forker(self, num_instances, buffer_size)
        return [_ChildDataPipe(forker, number) for number in range(num_instances)]


class IterableWrapper(IterDataPipe):
    def __init__(self, make):
        self.make = make

    def __iter__(self):
        yield from self.make()


class Mapper(IterDataPipe):
    def __init__(self, source, function):
        self.source, self.function = source, function

    def __iter__(self):
        for sample in self.source:
            yield self.function(sample)


class Batcher(IterDataPipe):
    def __init__(self, source, size):
        self.source, self.size = source, size

    def __iter__(self):
        batch = []
        for sample in self.source:
            batch.append(sample)
            if len(batch) == self.size:
                yield batch
                batch = []


class _Forker:
    """Reads the source once, and holds what the slowest child has not taken yet"""

    def __init__(self, source, num_instances, buffer_size):
        self.source, self.buffer_size = source, buffer_size
        self.buffer = collections.deque()
        self.iterator, self.leading, self.slowest = None, 0, 0
        self.positions = [0] * num_instances

    def next_of(self, number):
        if self.iterator is None:
            self.iterator = iter(self.source)
        position = self.positions[number]
        if position == self.leading:
            if len(self.buffer) >= self.buffer_size:
                raise BufferError(
                    f"ForkerIterDataPipe buffer overflow, buffer size {self.buffer_size} is insufficient."
                )
            self.buffer.append(next(self.iterator))
            self.leading += 1
        sample = self.buffer[position - self.slowest]
        self.positions[number] += 1
        while self.slowest < min(self.positions):
            self.buffer.popleft()
            self.slowest += 1
        return sample


class _ChildDataPipe(IterDataPipe):
    def __init__(self, forker, number):
        self.forker, self.number = forker, number

    def __iter__(self):
        while True:
            try:
                yield self.forker.next_of(self.number)
            except StopIteration:
                return
