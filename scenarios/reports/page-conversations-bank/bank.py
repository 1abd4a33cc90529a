"""The bank of sessions: states of conversations that may go on, within a budget of bytes"""

import collections


class SessionBank:
    def __init__(self, max_bytes):
        self.max_bytes, self.bytes = max_bytes, 0
        self.entries = collections.OrderedDict()
        self.hits = self.evictions = 0

    @staticmethod
    def size(state):
        return sum(tensor.numel() * tensor.element_size() for tensor in state.values())

    def get(self, key):
        state = self.entries.get(key)
        if state is not None:
            self.hits += 1
            self.entries.move_to_end(key)
        return state

    def put(self, key, state):
        self.entries[key] = state
        self.bytes += self.size(state)
        while self.bytes > self.max_bytes:
            _, oldest = self.entries.popitem(last=False)
            self.bytes -= self.size(oldest)
            self.evictions += 1
