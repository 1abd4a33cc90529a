"""A look at the locals of running functions leaves no trace: not in the dict that CPython keeps of them, nor in the variables
that it sets from that dict."""

import subprocess

import agent_parts
import receiver

PARTS = """
import gc, importlib.util, sys, weakref
spec = importlib.util.spec_from_file_location("agent_parts", sys.argv[1])
agent_parts = importlib.util.module_from_spec(spec)
spec.loader.exec_module(agent_parts)
common = agent_parts.common(sys.argv[2])
look, paths = common.locals_of, common.load("paths")
OLD = sys.version_info < (3, 13)
"""


def printed(python, script, program):
    command = [python, script(PARTS + program), agent_parts.__file__, receiver.library()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1]


HOOKED = """
looked = 0

def hook(frame, event, argument):
    global looked
    if frame.f_code.co_name == "step" and event in ("call", "line", "return"):
        looked += len(dict(look(frame)))
    return hook

def step(a, b):
    c = a + b
    return [n * c for n in range(a)]

for use in (sys.setprofile, sys.settrace):
    use(hook)
    found = [step(2, number) for number in range(100)]
    use(None)
    assert found == [[0, 2 + number] for number in range(100)], found
print(looked >= 2 * 100 * 4)
"""


def test_a_look_in_the_midst_of_a_profiler_or_tracer_takes_no_variable(python, script):
    assert printed(python, script, HOOKED) == ["True"]


ASKED_BEFORE = """
def hook(frame, event, argument):
    if frame.f_code.co_name == "step":
        dict(look(frame))
    return hook

def step():
    x = 1
    seen = locals()
    x = 2
    y = 3
    len("")
    return x, y

class Value:
    pass

def freed():
    value = Value()
    dies = weakref.ref(value)
    look(sys._getframe())
    len("")
    del value
    return dies() is None

def nothing(frame, event, argument):
    return nothing

for use in (sys.setprofile, sys.settrace):
    use(hook)
    found = step()
    use(nothing)
    dead = freed()
    use(None)
    print(found, dead)
"""


def test_a_dict_from_before_sets_no_variable_and_nothing_lives_on_beside_a_tracer(python, script):
    found = printed(python, script, ASKED_BEFORE)
    # Beside a profiler CPython 3.9 and 3.10 let the value live on by themselves.
    assert found == printed(python, script, "look = lambda frame: ()\n" + ASKED_BEFORE)
    assert all(line.startswith("(2, 3) ") for line in found) and len(found) == 2


CHANGED = """
def tracer(frame, event, argument):
    if frame.f_code.co_name == "step" and event == "line":
        frame.f_locals["a"] = 5
        look(frame)
    return tracer

def step(a):
    b = 1
    return a

sys.settrace(tracer)
found = step(1)
sys.settrace(None)
print(found)
"""


def test_what_a_debugger_has_set_stays_set(python, script):
    assert printed(python, script, CHANGED) == ["5"]


KEPT = """
class Value:
    pass

def step():
    first = 1
    seen = locals()
    if OLD:
        before = dict(seen)
    first, value = 2, Value()
    found = dict(look(sys._getframe()))
    assert found["first"] == 2 and found["value"] is value, found
    if OLD:
        assert "value" not in seen and seen["first"] == 1 and set(seen) == set(before), seen
    del found

def alive():
    value = Value()
    dies = weakref.ref(value)
    look(sys._getframe())
    del value
    return dies() is None

def generator():
    value = Value()
    yield weakref.ref(value)
    del value
    yield

step()
print(alive())
suspended = generator()
dies = next(suspended)
local = paths._local(suspended, dies())
assert local.name == "value" and local.code.co_name == "generator"
next(suspended)
print(dies() is None)
"""


def test_a_dict_of_the_programs_stays_as_it_was_and_no_value_lives_on(python, script):
    assert printed(python, script, KEPT) == ["True", "True"]


STATE = """
def step(collects):
    (gc.enable if collects else gc.disable)()
    look(sys._getframe())
    return gc.isenabled()

print(step(True), step(False))
"""


def test_the_collector_is_on_or_off_as_before(python, script):
    assert printed(python, script, STATE) == ["True False"]
