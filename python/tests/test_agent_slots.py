"""Lists and tuples that a function of C is still filling are told from complete ones, and no look reads them."""

import gc
import sys

import pytest

import agent_parts
import receiver
from receiver import HEARD, several, watched


@pytest.fixture(params=["layout", "another layout"])
def slots(request):
    agent_parts.forget()
    module = agent_parts.common(receiver.library()).load("slots")
    if request.param == "another layout":
        module._pointer = False
    yield module
    agent_parts.forget()


def test_what_is_there_is_complete(slots):
    for container in ([], (), [1], (None,), list(range(1000)), tuple(range(1000)), {1: 2}, {3}, "text"):
        assert slots.complete(container), container
    grown = []
    for number in range(100):
        grown.append(number)
        assert slots.complete(grown)


def half_made():
    """Whether each tuple is complete that `tuple` has not yet filled."""
    seen = []

    def numbers(slots):
        for number in range(8):
            if number == 5:
                some = [one for one in gc.get_objects() if type(one) is tuple]
                seen.extend([slots.complete(one) for one in some if len(gc.get_referents(one)) < len(one)])
            yield [number]

    return seen, numbers


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="tuple() collects in a list first, from Python 3.14 on")
def test_a_tuple_that_is_being_filled_is_not(slots):
    seen, numbers = half_made()
    assert tuple(numbers(slots)) == tuple([number] for number in range(8))
    assert seen and not any(seen)


UNDER_WAY = (
    HEARD
    + """
import ctypes, gc, marshal, sys, time
kept = [bytearray(b"1") * (1 << 20) for _ in range(90)]
text = marshal.dumps(tuple(tuple([str(n), (n, [])] for n in range(m, m + 300)) for m in range(300)))
def several():
    for number in range(700):
        if number == 650:
            time.sleep(0.001)
        yield [number]
def soon():
    # A walk with the next look.
    memory = sys.modules.get("_ullage_memory")
    if memory is not None:
        memory._next_walk = 0.0
while not heard():
    soon()
    tuple(several())
    soon()
    marshal.loads(text)
    kept.append(bytes(1 << 18))
print("done")
"""
)


def test_looks_in_the_midst_of_functions_of_c_do_no_harm(script):
    walked = several(3, "memory", figures=lambda figures: "tensors" in figures)
    done, receiver = watched([sys.executable, "-X", "faulthandler", script(UNDER_WAY)], text=True, until=walked)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert walked(receiver.messages)
