"""Policies by their names: the most recently used ones in memory, the others on disk"""

import os
from collections import deque

import torch


class PolicyMap:
    def __init__(self, capacity, path):
        self.path = path
        self.cache, self.valid_keys = {}, set()
        self.deque = deque(maxlen=capacity)

    def __contains__(self, key):
        return key in self.valid_keys

    def keys(self):
        return sorted(self.valid_keys)

    def file(self, key):
        return os.path.join(self.path, f"{key}.policy_state")

    def __getitem__(self, key):
        if key not in self.valid_keys:
            raise KeyError(f"PolicyID '{key}' not in this PolicyMap!")
        if key in self.cache:
            self.deque.remove(key)
            self.deque.append(key)
            return self.cache[key]
        policy = torch.load(self.file(key), weights_only=False)
        os.remove(self.file(key))
        self[key] = policy
        return policy

    def __setitem__(self, key, policy):
        if key in self.cache:
            self.deque.remove(key)
            self.deque.append(key)
        else:
            if len(self.deque) == self.deque.maxlen:
                self._stash_to_disk()
            self.deque.append(key)
        self.cache[key] = policy
        self.valid_keys.add(key)

    def __delitem__(self, key):
        self.valid_keys.remove(key)
        if key in self.cache:
            del self.cache[key]
        else:
            os.remove(self.file(key))

    def _stash_to_disk(self):
        dropped_policy_id = self.deque[0]
        policy = self.cache[dropped_policy_id]
        torch.save(policy, self.file(dropped_policy_id))
        self.deque.popleft()
        del self.cache[dropped_policy_id]
