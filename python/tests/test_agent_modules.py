"""Which modules are the program's own, and that those of libraries are not written to: forked workers share them."""

import subprocess
import sys
import types

import pytest

import agent_parts
import receiver
from test_agent_memory import PARTS, WRITTEN


@pytest.fixture
def modules():
    agent_parts.forget()
    yield agent_parts.common(receiver.library()).load("modules")
    agent_parts.forget()


def made(name, file=None, kind=types.ModuleType, **names):
    module = kind(name)
    module.__dict__.update(names, **{"__file__": file} if file is not None else {})
    return module


class Lazy(types.ModuleType):
    pass


class Text(str):
    __hash__ = str.__hash__

    def __eq__(self, other):
        raise AssertionError("asked")


def test_the_programs_own_are_those_that_are_asked_for_one_by_one(modules, monkeypatch):
    odd = [
        made("own", "/job/own.py"),
        made("relative", "own.py"),
        made("late", **{f"name_{n}": n for n in range(100)}),
        made("installed", "/venv/lib/python3.11/site-packages/installed/__init__.py"),
        made("debian", "/usr/lib/python3/dist-packages/debian.py"),
        made("frozen", "<frozen zipimport>"),
        made("python", f"{sys.base_prefix}/lib/python{sys.version_info[0]}.{sys.version_info[1]}/python.py"),
        made("ours", "/tmp/ullage_ours.py"),
        made("none"),
        made("number", 7),
        made("derived", Text("/job/own.py")),
        made("lazy", "/job/lazy.py", Lazy),
        made("ümlaut", "/job/ümläut/中.py"),
    ]
    odd[2].__file__ = "/job/late.py"
    main = made("__main__", "/venv/site-packages/launched.py")
    names = {
        **sys.modules,
        **{one.__name__: one for one in odd},
        "main": main,
        Text("text"): made("text", "/job/text.py"),
        7: main,
    }
    monkeypatch.setattr(sys, "modules", names)
    found = modules.of_program()
    assert {name for name, _ in found} == {
        name for name, one in list(names.items()) if type(name) is str and modules.is_program(one)
    }
    assert {"own", "relative", "late", "main", "ümlaut"} <= {name for name, _ in found}
    assert all(names[name] is one for name, one in found)


def test_the_program_may_keep_its_modules_in_something_of_its_own(modules, monkeypatch):
    class Modules(dict):
        def __iter__(self):
            raise AssertionError("asked")

        items = values = keys = get = __getitem__ = __iter__

    own = made("own", "/job/own.py")
    monkeypatch.setattr(sys, "modules", Modules({**sys.modules, "own": own}))
    try:
        found = modules.of_program(), modules.with_names(own.__dict__)
    finally:
        monkeypatch.undo()
    assert ("own", own) in found[0] and found[1] is own


def test_a_namespace_is_known_by_its_module_whatever_that_is_called(modules, monkeypatch):
    own = made("own")
    monkeypatch.setattr(sys, "modules", {**sys.modules, "alias": own, "text": "no module"})
    assert modules.with_names(own.__dict__) is own
    assert modules.with_names(dict(own.__dict__)) is None and modules.with_names(None) is None


def test_of_the_files_beside_the_main_module_only_installed_ones_are_passed_by(modules, monkeypatch):
    names = {
        "one": made("one", "/usr/lib/python3/dist-packages/one.py"),
        "two": made("two", "/srv/ullage_demo/two.py"),
    }
    names["three"] = made("three", "/venv/site-packages/three.py")
    monkeypatch.setattr(sys, "modules", {**sys.modules, **names})
    own = {name for name, _ in modules.of_program(("/site-packages/",), ())}
    assert {"one", "two"} <= own and "three" not in own


LIBRARIES = """
import types
for number in range(30_000):
    module = sys.modules["library_%d" % number] = types.ModuleType("library_%d" % number)
    module.__file__ = "/venv/lib/site-packages/library_%d.py" % number
"""

LOOKED_AT = """
part, said = memory.common.load("census"), []
part.LIBRARIES_S = 5.0
census = part.Census()
memory.common.load("from_below"), memory.common.load("depths")
class Registry:
    pass
sys.modules["library_7"].registry = Registry()
def add(many):
    rows = sys.modules["library_7"].registry.__dict__.setdefault("rows", {})
    for number in range(many):
        rows[len(rows)] = [bytes(2000)]
def copies(look, *arguments):
    before = written(), written()
    look(*arguments)
    return written() - before[1]
if os.fork() == 0:
    if sys.argv[3] == "modules":
        copied = copies(memory._of_libraries, 30_000)
    else:
        copied = 0
        for number in range(3):
            add(5000)
            copied += copies(census.take, said.append, (64 + 10 * number) << 20, (64 + 10 * number) << 20)
    print(copied, *{one.get("name") for one in (said[-1]["holders"] if said else ())}, flush=True)
    os._exit(0)
os.wait()
"""


@pytest.mark.parametrize("what", ["modules", "census"])
def test_a_look_in_a_forked_child_writes_to_no_module_of_a_library(python, script, what):
    done = subprocess.run(
        [python, script(PARTS + WRITTEN + LIBRARIES + LOOKED_AT), agent_parts.__file__, receiver.library(), what],
        capture_output=True,
        text=True,
    )
    # Of 30,000 modules, one reference counted to each and its namespace would copy more than 8 MB.
    copied, *names = done.stdout.split()
    assert done.stderr == "" and int(copied) < 4000
    assert what == "modules" or "library_7.registry.rows" in names


FORKS = """
import os, sys
held = bytearray(b"x") * (int(sys.argv[1]) << 20)
for number in range(int(sys.argv[2])):
    if os.fork() == 0:
        print("_ullage_memory" in sys.modules, "_ullage_failure" in sys.modules, flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.mark.parametrize("megabytes, forks, loaded", [(100, 2, "True True\n"), (1, 1, "False False\n")])
def test_what_children_will_load_is_there_before_a_program_of_some_size_forks(python, script, megabytes, forks, loaded):
    with receiver.Receiver() as heard:
        command = [python, script(FORKS), str(megabytes), str(forks)]
        done = subprocess.run(command, env=heard.environment(), capture_output=True, text=True)
    assert (done.stderr, done.stdout) == ("", forks * loaded)


def test_the_modules_that_lead_to_an_object_are_found_by_what_their_globals_hold(modules):
    native, wanted = sys.modules["_ullage_common"].native, []

    class Own:
        pass

    class Slots:
        __slots__ = ("held",)

    class Holder:
        held = wanted

    Holder.__module__ = "class"
    own, slots, deep = Own(), Slots(), Own()
    own.held, slots.held, deep.within = wanted, wanted, own
    every = {
        "itself": made("itself", held=wanted),
        "instance": made("instance", own=own),
        "slots": made("slots", slots=slots),
        "class": made("class", holder=Holder),
        "again": made("again", own=own),  # what led there once leads there again
        "imported": made("imported", holder=Holder),
        "deeper": made("deeper", deep=deep),
        "list": made("list", inside=[wanted]),
        "function": made("function", function=eval("lambda: held", {"held": wanted})),
        "other": made("other", other=Own()),
        "derived": made("derived", kind=Lazy, held=wanted),
        Text("odd"): made("odd", held=wanted),
        7: made("seven", held=wanted),
        "text": "no module",
    }
    passed_by = (types.FunctionType, types.ModuleType, list)
    found = native.leading(every, (id(wanted), id(Text)), passed_by, 10**12)
    assert found == [every[name] for name in ("itself", "instance", "slots", "class", "again")]
    static = types.MappingProxyType.__dict__["copy"]
    if sys.version_info < (3, 12):  # what CPython itself brings has its namespace elsewhere since
        assert native.leading({"m": made("m", t=types.MappingProxyType)}, (id(static),), passed_by, 10**12)
    assert native.leading(every, (), passed_by, 10**12) == []
    assert native.leading(every, (id(wanted),), passed_by, -(10**12)) == []

    class Rows(list):
        pass

    every = {"long": made("long", rows=Rows([None] * 10**6), held=wanted)}
    assert native.leading(every, (id(wanted),), passed_by, 10**12) == [every["long"]]
    assert native.leading(every, (id(wanted),), passed_by, 10**5) == []  # the list takes longer


HALF = """
import marshal, os, sys
begin = sys.modules["_ullage_common"]._load_part.__globals__
load, parts = begin["_load"], begin["parts"]
begin["here"] = os.path.dirname(__file__)

def leave(name, source):
    with open(os.path.join(begin["here"], "ullage_" + name + ".py"), "w") as file:
        file.write(source)

def forked():
    # What the agent does before anything else in a child that has something to do.
    if os.fork() == 0:
        sys.modules["_ullage_agent"].after_fork()
        print("_ullage_half" in sys.modules, sys.dont_write_bytecode, flush=True)
        os._exit(0)
    os.wait()

begin["BUILTINS"]["forked"] = forked
leave("half", "forked()")
sys.dont_write_bytecode = True
load("half")
print("_ullage_half" in sys.modules, flush=True)
forked()
laid = marshal.dumps(compile("raise MemoryError", "laid", "exec"))
parts["laid"] = laid, len(laid), len(laid)
try:
    load("laid")
except MemoryError:
    print("laid" in parts)  # for who tries again, with nothing to open
leave("cut", "whole = 2")
parts["cut"] = laid[:-4], len(laid) - 4, len(laid) - 4
print(load("cut").whole, "cut" in parts)
leave("twice", "inner = load('twice') if '_ullage_twice' in modules else None")
begin["BUILTINS"].update(load=load, modules=sys.modules)
print(load("twice").inner is sys.modules["_ullage_twice"])  # as another thread may, meanwhile
leave("broken", "raise MemoryError")
try:
    load("broken")
except MemoryError:
    print("_ullage_broken" in sys.modules)
leave("broken", "whole = 1")
print(load("broken").whole)
"""


def test_a_part_that_is_half_loaded_is_none(python, script):
    with receiver.Receiver() as heard:
        done = subprocess.run([python, script(HALF)], env=heard.environment(), capture_output=True, text=True)
    # In a child that was forked meanwhile, in the program, in a child that has it whole, and where it failed.
    assert (done.stderr, done.stdout.split("\n")[:-1]) == (
        "",
        ["False True", "True", "True True", "True", "2 False", "True", "False", "1"],
    )
