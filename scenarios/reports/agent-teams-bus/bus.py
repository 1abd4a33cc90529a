"""The event bus: who wants to know of a kind of event, and the publishing of events"""

import collections
import dataclasses
import itertools
import time


@dataclasses.dataclass
class Event:
    kind: str
    source: str
    data: dict
    timestamp: float = dataclasses.field(default_factory=time.time)


class EventBus:
    def __init__(self, history=100):
        self.handlers = {}
        self.numbers = itertools.count(1)
        self.history = collections.deque(maxlen=history)

    def subscribe(self, kind, handler):
        handler_id = f"handler-{next(self.numbers)}"
        self.handlers.setdefault(kind, {})[handler_id] = handler
        return handler_id

    def publish(self, event):
        self.history.append((event.kind, event.source, event.timestamp))
        for handler in list(self.handlers.get(event.kind, {}).values()):
            handler(event)


default_bus = EventBus()
