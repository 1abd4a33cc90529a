"""Lists and tuples that a function of C is still filling are told from complete ones, and no look reads them."""

import ctypes
import gc
import pathlib
import sys
import types

import pytest

from receiver import watched

AGENT = pathlib.Path(__file__).resolve().parent.parent / "ullage" / "agent"


@pytest.fixture(params=["ctypes", "no ctypes"])
def slots(request, monkeypatch):
    assert ctypes.c_void_p
    if request.param == "no ctypes":
        monkeypatch.setitem(sys.modules, "ctypes", None)
    module = types.ModuleType("_ullage_slots")
    exec(compile((AGENT / "slots.py").read_text(), "/agent/ullage_slots.py", "exec"), module.__dict__)
    return module


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


UNDER_WAY = """
import ctypes, gc, marshal, sys, time
kept = [bytearray(b"1") * (1 << 20) for _ in range(90)]
text = marshal.dumps(tuple(tuple([str(n), (n, [])] for n in range(m, m + 300)) for m in range(300)))
end = time.monotonic() + 4
def several():
    for number in range(700):
        if number == 650:
            time.sleep(0.001)
        yield [number]
def soon():
    # A look at the next moment, and a walk with it.
    hooks.next_look = 0.0
    memory = sys.modules.get("_ullage_memory")
    if memory is not None:
        memory._next_walk = 0.0
hooks = sys.modules["_ullage_hooks"]
while time.monotonic() < end:
    soon()
    tuple(several())
    soon()
    marshal.loads(text)
    kept.append(bytes(1 << 18))
print("done")
"""


def test_looks_in_the_midst_of_functions_of_c_do_no_harm(script):
    done, receiver = watched([sys.executable, "-X", "faulthandler", script(UNDER_WAY)], text=True)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert len([message for message in receiver.of("memory") if "tensors" in message["figures"]]) >= 1
