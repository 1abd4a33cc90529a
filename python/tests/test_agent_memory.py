"""What the agent says of a Python's memory in passing, and that it stays unseen while it does."""

import importlib.util
import pathlib
import subprocess
import sys
import time
import types

from receiver import AGENT, watched
from test_agent_transparency import same

MIB = 1 << 20


def memory_module():
    spec = importlib.util.spec_from_file_location("agent_memory", pathlib.Path(AGENT) / "memory.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def figures(receiver):
    return [message["figures"] for message in receiver.of("memory")]


GROWN_THEN_SLEEPS = """
import time
kept = [bytes(20_000) for _ in range(6000)]
for number in range(20):
    time.sleep(0.1)
"""


def test_large_objects_are_told_while_the_program_sleeps(python, script):
    # All is there before the first sleep: a walk that took long is the only one in these 2 s, and must find it too.
    _, receiver = watched([python, script(GROWN_THEN_SLEEPS)])
    last = [said for said in figures(receiver) if "tensors" in said][-1]
    assert last["malloc_used"] > 100 * MIB and last["tensors"] == 0
    assert 0.7 * last["malloc_used"] < last["python_large"] <= 1.1 * last["malloc_used"]


def test_a_short_or_small_program_says_nothing(python, script):
    _, receiver = watched([python, "-c", "kept = list(range(1000))"])
    assert figures(receiver) == []


def test_a_collection_is_a_moment_too(python, script):
    program = "import gc, time\nend = time.monotonic() + 1.5\nwhile time.monotonic() < end:\n    gc.collect(0)"
    _, receiver = watched([python, script(program)])
    assert figures(receiver)


COLLECTS = """
import gc, time
class Node:
    pass
gc.disable()
time.sleep(1.1)
time.sleep(0)
pins = []
for number in range(4000):
    node = Node()
    node.me, node.data = node, bytes(20_000)
    pins.append(bytes(2000))
del node
gc.collect()
"""


def test_after_much_was_collected_a_look_says_what_is_kept_of_it(python, script):
    _, receiver = watched([python, script(COLLECTS)])
    last = figures(receiver)[-1]
    assert last["malloc_free"] > 60 * MIB and last["malloc_used"] < 30 * MIB


SLEEPS = """
import inspect, pickle, time, types
print(repr(time.sleep), time.sleep.__name__, time.sleep.__module__, time.sleep.__doc__[:20])
print(isinstance(time.sleep, types.BuiltinFunctionType), inspect.isbuiltin(time.sleep), callable(time.sleep))
assert pickle.loads(pickle.dumps(time.sleep)) is time.sleep
class Naps:
    nap = time.sleep
Naps().nap(0)
try:
    time.sleep(-1)
except ValueError:
    import traceback
    traceback.print_exc()
time.sleep("x")
"""


def test_sleep_is_what_it_was(python, script):
    same([python, script(SLEEPS)])


def test_a_forked_child_speaks_for_itself(python, script):
    program = (
        "import os, time\nkept = [bytes(20_000) for _ in range(4000)]\ntime.sleep(1.2)\ntime.sleep(0)\npid = os.fork()\n"
        "if not pid:\n    kept += [bytes(20_000) for _ in range(1000)]\n"
        "    for _ in range(15):\n        time.sleep(0.1)\n    os._exit(0)\nos.waitpid(pid, 0)"
    )
    _, receiver = watched([python, script(program)])
    assert len({message["pid"] for message in receiver.of("memory")}) == 2


INFO = b"""<malloc version="1">
<heap nr="0">
<sizes>
  <size from="33" to="48" total="480" count="10"/>
  <unsorted from="20000" to="20480" total="200000" count="10"/>
</sizes>
<total type="fast" count="10" size="480"/>
<total type="rest" count="11" size="600000"/>
<system type="current" size="1000000"/>
<system type="max" size="1000000"/>
</heap>
<heap nr="1">
<sizes>
</sizes>
<total type="fast" count="0" size="0"/>
<total type="rest" count="1" size="50000"/>
<system type="current" size="135168"/>
</heap>
<total type="fast" count="10" size="480"/>
<total type="rest" count="12" size="650000"/>
<total type="mmap" count="2" size="3000000"/>
<system type="current" size="1135168"/>
</malloc>
"""


def test_malloc_info_is_read():
    said = memory_module().read_malloc_info(INFO)
    free = 480 + 600_000 + 50_000
    holes = 200_000 - 10 * (4096 + 48)
    top = 600_480 - 200_480 - 4096
    assert said == {
        "malloc_used": 1_135_168 - free,
        "malloc_mapped": 3_000_000,
        "malloc_free": free,
        "malloc_trimmable": holes + top,
        "malloc_free_main": 600_480,
        "malloc_arenas": 2,
    }


def test_walks_of_dicts_that_the_collector_does_not_list(monkeypatch):
    kept = [{"x": bytes(20_000)} for _ in range(1000)]
    module = memory_module()
    slots = types.SimpleNamespace(complete=lambda _container: True)
    monkeypatch.setitem(sys.modules, "_ullage_hooks", types.SimpleNamespace(load=lambda _name: slots))
    objects = module.gc.get_objects()
    assert 18 * MIB < module._python_large(objects) < 60 * MIB
    del kept


def test_what_reading_traces_took_puts_no_look_off(monkeypatch):
    memory, said = memory_module(), []

    def reads(_send, _private):
        until = time.thread_time() + 0.1
        while time.thread_time() < until:
            pass

    monkeypatch.setitem(sys.modules, "_ullage_sites", types.SimpleNamespace(look=reads))
    again = memory.look(said.append, light=True)
    assert [message["kind"] for message in said] == ["memory"]
    assert again < 0.1 * memory.SHARE


def test_a_look_costs_little_of_the_time(python, script):
    """The looks of a second that does nothing else, by the process's own clock."""
    program = (
        "import time\nbegan = time.monotonic()\n"
        "while time.monotonic() - began < 3:\n    time.sleep(0.001)\nprint(time.process_time())"
    )
    done, _ = watched([python, script(program)])
    plain = subprocess.run([python, script(program)], capture_output=True, check=True)
    assert float(done.stdout) - float(plain.stdout) < 0.15
