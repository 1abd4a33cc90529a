"""Moments to look at memory in programs of torch: after an optimizer's step, before a batch of a loader's worker, as a
model is called.

Loaded with torch; hooks.py says what a moment is. The surprise: a loop that only computes makes few objects of Python,
and then the collector never runs in it. All that is left to see of it is that it calls its model.
"""

import sys
import time

import _ullage_hooks as hooks

MOST = 20_000  # calls of models in a second: at about 0.25 us each, 0.5 % of the time

_forward = None


def on_optimizer(module):
    register = getattr(module, "register_optimizer_step_post_hook", None)  # torch 2.0 up
    if register is not None:
        register(_after_step)


def _after_step(_optimizer, _arguments, _keywords):
    forward_no_more()
    hooks.moment()


def on_worker(module):
    """A loader's worker asks before each batch whether its parent still lives."""
    watchdog = module.ManagerWatchdog
    watchdog.is_alive = hooks.Asked(watchdog.is_alive, lambda _watchdog: hooks.moment())


class _Forward:
    """Stands for the method by which a model is called: the dearest moment. So it makes way as soon as an optimizer or
    a loader tells the time as well, where calls come too thick, and before torch.compile looks at it. Not inside of
    another model's call: what one step computes is no growth."""

    def __init__(self, kind, function):
        self.kind, self.function, self.calls, self.since = kind, function, 0, time.monotonic()

    def __get__(self, one, kind=None):
        if one is not None:
            self.calls += 1
            if time.monotonic() >= hooks.next_look:
                self.look()
        return self.function.__get__(one, kind)

    def look(self):
        frame, inside = sys._getframe(2), self.function.__code__
        while frame is not None:
            if frame.f_code is inside:
                return
            frame = frame.f_back
        hooks.moment()
        now, memory = time.monotonic(), sys.modules.get("_ullage_memory")
        often = self.calls > MOST * (now - self.since)
        self.calls, self.since = 0, now
        if often and not (memory is not None and memory.rises()):
            forward_no_more()


def on_modules(module):
    global _forward
    kind = module.Module
    function = kind.__dict__.get("__call__")
    if type(function) is type(on_modules) and "torch._dynamo" not in sys.modules:
        _forward = _Forward(kind, function)
        kind.__call__ = _forward


def forward_no_more(_module=None):
    global _forward
    before, _forward = _forward, None
    if before is not None and before.kind.__dict__.get("__call__") is before:
        before.kind.__call__ = before.function
