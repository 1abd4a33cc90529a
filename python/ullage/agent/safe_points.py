"""When is there time to look at memory? Where the program sleeps or its collector has run; other parts add theirs.
Where it comes by nowhere and memory rises, its own allocations ask for a moment, and beside other threads one that
sleeps (python/agent, allocated.rs and waker.rs).

What stands in the program's way is of C, and a look itself runs in a thread of the agent's own (python/agent). The
surprise: the program's thread waits meanwhile, whatever lock it holds: so nothing here imports, takes a lock or calls
code of the program.
"""

import atexit
import gc
import time

import _ullage_agent as agent
import _ullage_common as common

FIRST_SAMPLE_S = 1.0
IN_TIME = -1.0  # for access(): only where a look at memory is due

also = []  # what other parts look at whenever memory was looked at, but for the short looks
_memory = None  # the part, once it was needed
_began = 0.0  # by common.monotonic()


def install():
    global _began
    native = common.native
    _began = common.monotonic()
    common.in_child.append(_after_fork)
    native.sample_with(_look)
    native.next_sample(FIRST_SAMPLE_S)
    atexit.register(native.next_sample, float("inf"))  # the collector runs for the last time when libraries are gone
    if common.replaces(b"COLLECTIONS"):
        gc.callbacks.append(native.on_collection)
    native.wake(common.replaces(b"THREAD"))
    if common.replaces(b"ALLOCATIONS"):
        native.allocations()
    if common.replaces(b"SLEEP"):
        time.sleep = native.stand_in(time.sleep, None, 2)


def _after_fork():
    global _began
    _began = common.monotonic()


def began_long_ago():
    """This process had time to grow."""
    return common.monotonic() >= _began + FIRST_SAMPLE_S


def _look(light, early):
    """`light`: what came since the last look is no growth of the program's. `early`: a short one."""
    again = memory().look(agent.send, light, early)
    for look in also if not early else ():
        try:
            look()
        except Exception:
            pass
    return again


def memory():
    global _memory
    if _memory is None:
        common.load("failure")  # a later exception may leave no room for it
        _memory = common.load("memory")
    return _memory


def rose_lately():
    """Growth goes on, as far as looks of the last seconds have shown."""
    return _memory is not None and _memory.rose_lately()


def sample_if_due(*_):
    """In a thread of the agent's own. Another thread of the program may have come by since it was found to be time."""
    if common.native.is_due():
        common.native.next_sample(float("inf"))
        common.native.next_sample(_look(False, False))


def sample_after_import(*_):
    """What a library takes for itself is no growth of the program's."""
    common.native.next_sample(_look(True, False))
