"""Which function of C a piece of Python is said to be in the midst of."""

import dis  # noqa: F401, what takes code apart
import sys

import pytest

import agent_parts

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="code knows no positions")


class Holder:
    """Says what its caller's instruction calls."""

    def __init__(self):
        self.values = self
        self.by_name = {"values": self}
        self.heard = []

    def look(self, *_given, **_named):
        frame = sys._getframe(1)
        self.heard.append(_calls.called(frame.f_code, frame.f_lasti))
        return self

    __getitem__ = look


_calls = None


@pytest.fixture
def holder():
    global _calls
    _calls = agent_parts.load("calls")
    yield Holder()
    agent_parts.forget()


def test_a_method_is_named_with_what_it_is_a_method_of(holder):
    holder.look()
    holder.values.values.look(1, *[2], more=[3 for _ in (1, 2)])
    (holder
     .values
     .look(
     ))  # fmt: skip
    [holder.values.look() for _ in range(1)]
    assert holder.heard == ["holder.look", "values.look", "look", "values.look"], "a chain of lines begins at its last"


def test_of_calls_in_calls_it_is_the_one_that_runs(holder):
    holder.look(holder.values.look(), len(holder.heard))
    holder.values.look().look()
    assert holder.heard == ["values.look", "holder.look", "values.look", "look"]


def test_a_function_is_named_as_it_is_called(holder):
    look = holder.look
    look()
    list(map(lambda _: look(), [1]))
    assert holder.heard == ["look", "look"], "a variable of an outer function as well"


def test_what_has_no_name_gets_none(holder):
    holder.by_name["values"].look()
    [holder.look][0]()
    (holder.look if holder else None)()
    holder[0]
    assert holder.heard == ["look", None, None, None]


def test_long_code_is_left_alone(holder):
    scope = {"holder": holder}
    exec("holder.look()\n" + "x = 1\n" * _calls.LONGEST, scope)
    exec("holder.look()", scope)
    assert holder.heard == [None, "holder.look"]
