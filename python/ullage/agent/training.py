"""Moments to look at memory in programs of torch: after an optimizer's step, before a batch of a loader's worker, as a
model is called.

Loaded with torch. The surprise: a loop that only computes makes few objects of Python, and then the collector never
runs in it. All that is left to see of it is that it calls its model.
"""

import sys

import _ullage_common as common
import _ullage_safe_points as safe_points

MOST = 20_000  # calls of models in a second: at about 0.25 us each, 0.5 % of the time

_forward = None  # (the access, the class, its function)
_calls = 0
_since = common.monotonic()


def on_optimizer(module):
    register = getattr(module, "register_optimizer_step_post_hook", None)  # torch 2.0 up
    if register is not None and common.replaces(b"OPTIMIZERS"):
        register(common.native.safe_point)


def on_worker(module):
    """A loader's worker asks before each batch whether its parent still lives."""
    if common.replaces(b"LOADERS"):
        watchdog = module.ManagerWatchdog
        watchdog.is_alive = common.native.access(watchdog.is_alive, safe_points.sample_if_due, safe_points.IN_TIME)


def _after_fork():
    global _calls, _since
    _calls, _since = _forward[0].calls if _forward is not None else 0, common.monotonic()


def _on_call(_model):
    """The dearest moment: so it makes way where a loader tells the time as well, where calls come too thick, and before
    torch.compile looks at it. Not inside of another model's call: what one step computes is no growth."""
    global _calls, _since
    if _forward is None:
        return
    access, _, function = _forward
    frame = common.caller()
    while frame is not None:
        if frame.f_code is function.__code__:
            return
        frame = frame.f_back
    safe_points.sample_if_due()
    now, calls = common.monotonic(), access.calls
    often = calls - _calls > MOST * (now - _since)
    _calls, _since = calls, now
    if often and not safe_points.rose_lately():
        forward_no_more()


def on_modules(module):
    global _forward
    kind = module.Module
    function = kind.__dict__.get("__call__")
    if not common.replaces(b"MODELS"):
        return
    if type(function) is type(on_modules) and "torch._dynamo" not in sys.modules:
        access = common.native.access(function, _on_call, safe_points.IN_TIME)
        _forward = access, kind, function
        kind.__call__ = access


def forward_no_more(_module=None):
    global _forward
    before, _forward = _forward, None
    if before is not None and before[1].__dict__.get("__call__") is before[0]:
        before[1].__call__ = before[2]


common.in_child.append(_after_fork)
