"""Bounds how far the policy may be ahead of a rollout: by when a rollout may start, not by throwing it away."""

import threading


class AsyncConfig:
    def __init__(self, groups_per_batch, max_steps_off_policy):
        self.groups_per_batch, self.max_steps_off_policy = groups_per_batch, max_steps_off_policy


class Admission:
    """Numbers the groups; a number is given out when the group that has it cannot become too old."""

    def __init__(self, config):
        self.config, self.condition = config, threading.Condition()
        self.trained, self.given, self.closed = 0, 0, False

    def start(self):
        limit = self.config.groups_per_batch * (1 + self.config.max_steps_off_policy)
        with self.condition:
            self.condition.wait_for(lambda: self.closed or self.given - self.trained < limit)
            if self.closed:
                return None
            self.given += 1
            return self.given - 1

    def finish_batch(self):
        with self.condition:
            self.trained += self.config.groups_per_batch
            self.condition.notify_all()

    def close(self):
        with self.condition:
            self.closed = True
            self.condition.notify_all()


class FinishedGroups:
    """Groups that wait for the trainer, which takes the oldest ones first."""

    def __init__(self):
        self.groups, self.condition = {}, threading.Condition()

    def put(self, number, group):
        with self.condition:
            self.groups[number] = group
            self.condition.notify_all()

    def take(self, count):
        with self.condition:
            self.condition.wait_for(lambda: len(self.groups) >= count)
            return [self.groups.pop(number) for number in sorted(self.groups)[:count]]
