"""Blocks of keys and values on the device and on the host, and who owns them"""

import itertools

import torch

TOKENS_PER_BLOCK = 16


class Pool:
    def __init__(self, blocks, layers, width):
        self.data = torch.zeros(blocks, layers, 2, TOKENS_PER_BLOCK, width)
        self.free = list(range(blocks))

    def take(self, count):
        taken, self.free = self.free[:count], self.free[count:]
        return taken


class Owner:
    """A run of blocks, which is in one of the pools as a whole"""

    def __init__(self, pool, blocks):
        self.pool, self.blocks = pool, blocks


class ResourceManager:
    def __init__(self, device_blocks, host_blocks, layers, width):
        self.device, self.host = Pool(device_blocks, layers, width), Pool(host_blocks, layers, width)
        self.owners, self.numbers = {}, itertools.count(1)
        self.prefixes, self.sessions = {}, {}

    def move(self, owner, pool):
        blocks = pool.take(len(owner.blocks))
        pool.data[blocks] = owner.pool.data[owner.blocks]
        owner.pool.free.extend(owner.blocks)
        owner.pool, owner.blocks = pool, blocks

    def plan_pressure(self, session, missing):
        """The owners that go to the host so that the blocks fit: those of the sessions that waited longest"""
        protected, participants, gained = set(self.sessions[session]), [], 0
        for other, owned in self.sessions.items():
            if gained >= missing:
                break
            if other == session:
                continue
            for number in owned:
                owner = self.owners[number]
                if owner.pool is not self.device or number in protected:
                    continue
                if number in participants:
                    raise RuntimeError("materialization pressure owner is duplicated")
                participants.append(number)
                gained += len(owner.blocks)
        if gained < missing:
            raise RuntimeError("prompt does not fit the device")
        return participants

    def materialize(self, session, prefix, blocks):
        """Brings what the session has to the device, and gives it new blocks for what it adds"""
        owned = self.sessions.pop(session, None)
        if owned is None:
            owned = [self.prefixes[prefix]] if prefix in self.prefixes else []
        self.sessions[session] = owned
        away = [self.owners[number] for number in owned if self.owners[number].pool is self.host]
        missing = blocks + sum(len(owner.blocks) for owner in away) - len(self.device.free)
        if missing > 0:
            for number in self.plan_pressure(session, missing):
                self.move(self.owners[number], self.host)
        for owner in away:
            self.move(owner, self.device)
        number = next(self.numbers)
        self.owners[number] = Owner(self.device, self.device.take(blocks))
        if not owned:
            self.prefixes[prefix] = number
        owned.append(number)
        return self.owners[number].blocks
