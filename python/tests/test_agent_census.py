"""The census: which name holds what grows, what a graph keeps, and that no code of the program runs."""

import asyncio
import atexit
import collections
import concurrent.futures
import contextvars
import ctypes
import functools
import gc
import heapq
import importlib.util
import itertools
import pathlib
import random
import sys
import threading
import time
import types
import unittest
import weakref
import xml.etree.ElementTree

import pytest

import agent_parts
import receiver
from test_agent_weight import told

MIB = 1 << 20


@pytest.fixture
def census():
    before = {name: module for name, module in sys.modules.items() if name.startswith("_ullage_")}
    agent_parts.forget()
    gc.collect()  # exceptions of other tests, in a circle with the lists that they are in
    module = agent_parts.common(receiver.library()).load("census")
    module.WALK_S = module.HOLDERS_S = module.GRAPHS_S = 5.0
    module.FIRST_DEPTHS_S = module.DEPTHS_S = module.HELD_S = 5.0
    sys.modules["_ullage_held"].HOLD_NS = 10**12
    # With all tests collected pytest has more objects than those that refer to one are asked for.
    module.MANY_REFERRERS = 1 << 40
    module.LIBRARIES_S = module.REFERRERS_S = 5.0
    sys.modules["_ullage_garbage"].WITHIN_NS, sys.modules["_ullage_garbage"].FAR_BACK = 10**12, 1 << 22
    yield module.Census()
    agent_parts.forget()
    sys.modules.update(before)


def taken(census, grown):
    said = []
    census.take(said.append, grown, grown)
    return said[0]


def holder(message, name):
    found = [one for one in message["holders"] if one.get("name") == name]
    assert found, [one.get("name") for one in message["holders"]]
    return found[0]


def queued(again, step):
    """What a queue, then 20 elements long, is after 30 more came and 20 were taken: as one, or made anew."""
    for number in range(20, 50):
        again.append(bytes(MIB) + bytes([number]))
    return step(again)


@pytest.mark.parametrize(
    ("step", "drained"),
    [
        (lambda all_of_them: [all_of_them.popleft() for _ in range(20)] and all_of_them, True),
        (lambda all_of_them: list(all_of_them)[10:], True),
        (lambda all_of_them: all_of_them, False),
        (lambda all_of_them: [one[:-1] for one in all_of_them], False),
        (lambda all_of_them: collections.deque(reversed(all_of_them)), False),
    ],
)
def test_what_is_taken_from_at_its_front_while_it_grows_is_told_from_a_collection(census, step, drained):
    waiting = collections.deque(bytes(MIB) + bytes([number]) for number in range(20))
    if step(collections.deque(waiting)).__class__ is list:
        waiting = list(waiting)
    taken(census, 20 * MIB)
    waiting = queued(waiting, step)
    assert len(waiting) >= 30
    assert holder(taken(census, 60 * MIB), "waiting")["drained"] is drained


def test_names_have_their_time_whatever_the_count_of_garbage_took(census, monkeypatch):
    paths, garbage = sys.modules["_ullage_paths"], sys.modules["_ullage_garbage"]
    left = []

    def count(heap):
        until = time.thread_time() + 0.05
        while time.thread_time() < until:
            pass

    def walk(until, *others, **named):
        left.append(until - time.thread_time())
        return iter(())

    monkeypatch.setattr(sys.modules["_ullage_census"], "WALK_S", 0.05)
    monkeypatch.setattr(garbage, "count", count)
    monkeypatch.setattr(paths, "walk", walk)
    taken(census, MIB)
    assert left[0] > 0.03


def test_what_a_suspended_function_holds_is_gone_to_though_a_walk_that_ended_early_met_it(census):
    def generate():
        samples = [bytes(MIB)]
        yield samples

    generator = generate()
    samples = next(generator)
    walk = sys.modules["_ullage_paths"].walk
    assert any(value is samples for value, _ in walk(time.thread_time() + 5, None, {id(generator)}, [generator]))


@pytest.mark.parametrize("every", [1, 2, 4])
def test_a_list_in_which_numbers_and_records_alternate_weighs_as_much_as_it_holds(census, every):
    log = []

    def add(number):
        for record in range(number):
            log.append([float(record * place) for place in range(60)])
            log.extend(range(10**6 + record, 10**6 + record + every))

    def weight():
        return sum(map(sys.getsizeof, log)) + sum(60 * 32 for one in log if type(one) is list)

    add(200)
    taken(census, MIB)
    before = weight()
    add(1000)
    assert holder(taken(census, 4 * MIB), "log")["more_bytes"] == pytest.approx(weight() - before, rel=0.25)


class Utterance:
    def __init__(self, before, text):
        self.before, self.text = before, text


class Assistant:
    def __init__(self):
        self.last = None

    def hear(self, number):
        for _ in range(number):
            self.last = Utterance(self.last, bytes(10_000))


@functools.lru_cache
def assistant():
    return Assistant()


def test_what_the_cache_of_a_global_function_leads_to_is_told_with_its_line(census):
    assistant.cache_clear()
    assistant().hear(500)
    taken(census, 5 * MIB)
    assistant().hear(3000)
    message = taken(census, 35 * MIB)
    assistant.cache_clear()
    found = [one for one in message["holders"] if one["type"] == "lru_cache"]
    assert found and found[0]["more_bytes"] > 20 * MIB, message["holders"]
    assert found[0]["line"].startswith("test_agent_census.py:")


class Experiment:
    def __init__(self):
        self.number = 0
        self.replies, self.cached, self.got, self.tried, self.by_name, self.backwards = {}, {}, {}, {}, {}, {}

    def record(self, value):
        self.replies[self.number] = value
        self.by_name[f"round {self.number}"] = value
        self.backwards[-self.number] = value
        self.number += 1

    def read(self, index):
        if index not in self.cached:
            self.cached[index] = bytes(MIB)
        return self.cached[index]

    def get(self, index):
        found = self.got.get(index)
        if found is None:
            found = self.got[index] = bytes(MIB)
        return found

    def attempt(self, index):
        try:
            return self.tried[index]
        except KeyError:
            self.tried[index] = bytes(MIB)

    def report(self):
        return [(number, len(value)) for number, value in self.replies.items()] + [self.replies[0]]


def test_a_dict_by_numbers_is_a_record_where_nobody_looks_before_it_is_added_to(census):
    pytest.importorskip("torch")
    experiment = Experiment()
    for number in range(30):
        if number == 10:
            taken(census, 60 * MIB)
        experiment.record(bytes(MIB + number))
        for read in (experiment.read, experiment.get, experiment.attempt):
            read(number)
    experiment.report()
    message = taken(census, 200 * MIB)
    names = ("replies", "cached", "got", "tried", "by_name", "backwards")
    found = {name: holder(message, f"experiment.{name}")["numbered"] for name in names}
    assert found == {name: name == "replies" for name in names}


def test_modules_that_a_program_loads_again_and_again_weigh_what_they_hold(census, tmp_path):
    place = tmp_path / "table.py"
    place.write_text("ROWS = [bytes(40_000) for _ in range(50)]\n\ndef row(n): return ROWS[n]\n")
    modules = {}

    def load(number):
        for _ in range(number):
            name = f"table_{len(modules)}"
            spec = importlib.util.spec_from_file_location(name, place)
            modules[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(modules[name])

    load(10)
    taken(census, 20 * MIB)
    load(15)
    found = holder(taken(census, 50 * MIB), "modules")
    assert found["element"].startswith("module")
    assert found["more_bytes"] == pytest.approx(15 * 50 * 40_000, rel=0.2)


def test_hooks_deep_inside_a_model_have_their_whole_name_and_no_dict_around_them_counts(census):
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Sequential(torch.nn.Sequential(torch.nn.Sequential(torch.nn.Linear(2, 2)))))

    def register(number):
        for _ in range(number):
            hook = functools.partial(print, bytes(MIB))
            model[0][0][0][0].register_forward_pre_hook(hook, with_kwargs=True)

    register(100)
    taken(census, 100 * MIB)
    register(120)
    found = taken(census, 220 * MIB)["holders"]
    within = "._modules['0']" * 4
    assert {one["name"].partition(".")[2] for one in found} == {f"{within[1:]}._forward_pre_hooks"}, found


class Reporter:
    """Takes events from the left, and puts them back: its server refuses them."""

    def __init__(self):
        self.events = {"media": collections.deque()}
        self.history, self.inbox = collections.deque(), collections.deque()

    def move(self):
        self.history.append(self.inbox.popleft())

    def flush(self):
        waiting = self.events["media"]
        taken_out = [waiting.popleft() for _ in range(min(8, len(waiting)))]
        waiting.extendleft(reversed(taken_out))

    def report(self, number):
        self.events["media"].append(bytes(MIB) + bytes([number]))
        self.inbox.append(bytes(MIB) + bytes([number]))
        self.move()


def test_a_deque_that_code_takes_from_is_a_queue_though_nobody_gets_to_it(census):
    reporter = Reporter()
    for number in range(20):
        reporter.report(number)
    taken(census, 40 * MIB)
    for number in range(20, 50):
        reporter.report(number)
        reporter.flush()
    message = taken(census, 100 * MIB)
    queue, history = holder(message, "reporter.events['media']"), holder(message, "reporter.history")
    assert (queue["drained"], queue["taken_from"]) == (False, True)
    assert (history["drained"], history["taken_from"]) == (False, False)


class Reorderer:
    """Hands out in order what comes in any, and drops the oldest of what it knows."""

    def __init__(self):
        self.stash, self.known, self.options, self.recent, self.shards, self.leases = {}, {}, {}, {}, {}, {}
        self.next_number = 0

    def remove(self, numbers):
        if self.leases.pop(numbers[0], None) is None:
            print("gone")
        return sum(self.shards.pop(number, None) is not None for number in numbers)

    def put(self, number):
        self.stash[number] = bytes(MIB) + bytes([number])
        self.known[number] = bytes(MIB) + bytes([number])
        self.options[number] = bytes(MIB) + bytes([number])
        self.shards[number] = bytes(MIB) + bytes([number])
        self.leases[number] = bytes(MIB) + bytes([number])
        if len(self.known) > 1000:
            self.known.pop(next(iter(self.known)))
        if self.next_number in self.stash:
            print(self.stash.pop(self.next_number))
        self.recent[number] = bytes(MIB) + bytes([number])
        again = self.recent.pop(number)
        self.recent[number] = again
        return self.options.pop("name", number)


def test_a_dict_whose_entries_code_takes_and_uses_is_a_queue(census):
    reorderer = Reorderer()
    for number in range(1, 20):
        reorderer.put(number)
    taken(census, 100 * MIB)
    for number in range(20, 50):
        reorderer.put(number)
    message = taken(census, 250 * MIB)
    found = {
        name: holder(message, f"reorderer.{name}")["taken_from"] for name in vars(reorderer) if name != "next_number"
    }
    others = dict.fromkeys(("known", "options", "recent", "shards", "leases"), False)
    assert found == {"stash": True, **others}


class Operations:
    """In flight by their numbers; those of a step that fails are never taken."""

    def __init__(self, apart=(1,), kind=dict, value=bytes):
        self.handles, self.number, self.apart, self.value = kind(), 0, apart, value

    def start(self):
        self.number += self.apart[len(self.handles) % len(self.apart)]
        # The collector knows no dict of bytes.
        self.handles[self.number] = self.value(bytes(MIB))
        return self.number

    def finish(self, number):
        print(len(self.handles.pop(number)))

    def step(self, fails=False):
        numbers = [self.start() for _ in range(6)]
        for number in numbers if not fails else ():
            self.finish(number)


def kept_apart(part):
    return [part]


@pytest.mark.parametrize(
    ("in_flight", "kind", "value"),
    [
        (0, dict, kept_apart),
        (3, dict, kept_apart),
        (3, dict, bytes),
        (3, collections.OrderedDict, kept_apart),
        (3, functools.partial(collections.defaultdict, bytes), bytes),
    ],
)
def test_a_dict_whose_first_entries_stay_while_later_ones_go_is_no_queue(census, in_flight, kind, value):
    operations = Operations(kind=kind, value=value)
    for number in range(8):
        operations.step(fails=number % 3 == 0)
    numbers = [operations.start() for _ in range(in_flight)]
    taken(census, (18 + in_flight) * MIB)
    for number in numbers:
        operations.finish(number)
    for number in range(8):
        operations.step(fails=number % 3 == 0)
    found = holder(taken(census, 36 * MIB), "operations.handles")
    assert (found["length"], found["taken_from"]) == (36, False)


@pytest.mark.parametrize(("taken_each", "apart"), [(0, (1,)), (0, (32,)), (0, (1, 9, 4, 17, 6)), (1, (1,))])
def test_a_dict_of_which_nothing_is_taken_any_more_or_what_came_first_is_a_queue(census, taken_each, apart):
    operations = Operations(apart, value=kept_apart)
    for _ in range(24):
        operations.start()
    taken(census, 24 * MIB)
    for number in range(1, 25):
        operations.start()
        for _ in range(taken_each):
            operations.start()
            operations.finish(number)
    assert holder(taken(census, 48 * MIB), "operations.handles")["taken_from"] is True


class Timer:
    """The later of what it is asked for waits for its time; the best of what it saw is kept."""

    def __init__(self):
        self.waiting, self.best, self.aliased = [], [], []

    def call_at(self, when, what):
        heapq.heappush(self.waiting, (when, what))
        heapq.heappush(self.best, (-when, what))
        if len(self.best) > 1000:
            heapq.heappop(self.best)
        heapq.heappush(self.aliased, (when, what + b"0"))

    def due(self, now):
        while self.waiting and self.waiting[0][0] <= now:
            yield heapq.heappop(self.waiting)[1]
        later = self.aliased
        while later and later[0][0] <= now:
            yield heapq.heappop(later)[1]
        self.worst = heapq.nsmallest(1, self.best)


def test_a_heap_that_code_takes_the_least_of_is_a_queue(census):
    timer = Timer()
    for number in range(20):
        timer.call_at(1000 + number, bytes(MIB) + bytes([number]))
    taken(census, 40 * MIB)
    for number in range(20, 50):
        timer.call_at(1000 + number, bytes(MIB) + bytes([number]))
        assert list(timer.due(number)) == []
    message = taken(census, 100 * MIB)
    found = {name: holder(message, f"timer.{name}")["taken_from"] for name in ("waiting", "best", "aliased")}
    assert found == {"waiting": True, "best": False, "aliased": True}


class InOrder:
    """Results of workers, by their numbers: one is late, and those after it wait."""

    def __init__(self):
        self.early, self.aside, self.heap, self.due, self.by_name = {}, {}, [], [], {}
        self.following = self.clock = 0

    def put(self, number, value):
        self.early[number] = self.aside[number] = value
        self.by_name[number] = value
        heapq.heappush(self.heap, (number, value))
        heapq.heappush(self.due, (number, value))

    def in_turn(self):
        while self.following in self.early:
            yield self.early.pop(self.following)
            self.following += 1

    def in_turn_again(self):
        following = self.following
        while (value := self.aside.pop(following, None)) is not None:
            following = following + 1
            yield value

    def least_in_turn(self):
        while self.heap and self.heap[0][0] == self.following:
            yield heapq.heappop(self.heap)[1]
            self.following += 1

    def at_its_time(self):
        self.clock += 1
        while self.due and self.due[0][0] <= self.clock:
            yield heapq.heappop(self.due)[1]

    def called(self, number):
        self.clock += 1
        return self.by_name.pop(number)


def test_what_code_takes_by_a_number_that_it_counts_waits_for_a_late_one(census):
    waiting = InOrder()
    ways = (waiting.in_turn, waiting.in_turn_again, waiting.least_in_turn)
    for number in range(1000, 1020):
        waiting.put(number, bytes(MIB) + bytes([number % 256]))
    taken(census, 20 * MIB)
    for number in range(1020, 1050):
        waiting.put(number, bytes(MIB) + bytes([number % 256]))
        assert [list(way()) for way in ways] == [[], [], []]
    message = taken(census, 50 * MIB)
    names = ("early", "aside", "heap", "due", "by_name")
    found = [holder(message, f"waiting.{name}") for name in names]
    assert [one["taken_from"] for one in found] == [True] * 5
    assert [one["in_order"] for one in found] == [True, True, True, False, False]


WAITING = {
    "while self.number in kept: use(kept.pop(self.number)); self.number += 1": True,
    "number = 0\n    while number in kept:\n        use(kept.pop(number))\n        number += 1": True,
    "number = 0\n    while (one := kept.pop(number, None)):\n        use(one); number = number + 1": True,
    "for number in range(9):\n        while number not in kept: other()\n        yield kept.pop(number)": True,
    "while number not in kept:\n        found, one = other()\n        kept[found] = one\n    return kept.pop(number)": True,
    "while number not in kept:\n        one = other()\n        kept[one[0]] = one[1]\n    use(kept.pop(number))": True,
    "if number not in kept: kept[number] = other()\n    return kept.pop(number)": False,
    "if number not in kept: return\n    kept[other] = kept[number]\n    use(kept.pop(number))": False,
    "if number not in kept: raise KeyError\n    one = kept.pop(number)\n    kept[self.number] = other(one)": False,
    "if number in kept:\n        use(kept.pop(number))\n        kept[other()] = self": False,
    # Replies by the number of a request.
    "self.number += 1\n    while self.number not in kept: other()\n    return kept.pop(self.number)": False,
    "self.number += 1\n    if other.number in kept: use(kept.pop(other.number))": False,
    "if other.number in kept: use(kept.pop(other.number))\n    self.number += 1": False,
    "while self.number in kept: use(kept.pop(self.number - 8)); self.number += 1": False,
    "while self.number in kept: use(kept.pop(other[self.number])); self.number += 1": False,
    "while self.number in kept: use(kept.pop(other(self.number))); self.number += 1": False,
    "while self.number in kept: use(kept.pop(self.number)); self.number += 2": False,
    "one = kept.pop(self.number); self.number += 1": False,
    "while self.number in other: use(kept.pop(self.number)); self.number += 1": False,
}
OF_HEAPS = {
    "while kept and kept[0][0] == self.number: use(heappop(kept)); self.number += 1": True,
    "while kept and self.number == kept[0][0]: use(heappop(kept)); self.number += 1": True,
    "one = kept\n    number = 0\n    while True:\n        if one[0].at != number: return\n"
    "        use(heappop(one)); number += 1": True,
    "self.number += 1\n    while kept and kept[0][0] <= self.number: use(heappop(kept))": False,
    "number = 0\n    while kept:\n        one = heappop(kept); number += 1\n        if one[1] == 'stop': break": False,
    "number = 0\n    one = kept[0]; number += 1\n    if number == 8: use(heappop(kept))": False,
}


@pytest.mark.parametrize(("word", "texts"), [("pop", WAITING), ("heappop", OF_HEAPS)])
def test_whether_code_waits_in_order_is_read_from_its_byte_code(python, script, word, texts):
    program = f"""
queues = agent_parts.common.__globals__["load"]("queues")
said = {{}}
for text in {list(texts)!r}:
    names = {{}}
    exec("def f(self, kept, other, use):\\n    " + text, names)
    said[text] = queues._waits_in_order(queues.steps_of.of(names["f"].__code__), "kept", {word!r})
say(said=said)
"""
    assert told(python, script, program)["said"] == texts


class Line:
    """First in, first out, by numbers of its own."""

    def __init__(self):
        self.items, self.head, self.tail = {}, 0, 0

    def put(self, value):
        self.items[self.tail] = value
        self.tail += 1

    def get(self):
        if self.head not in self.items:
            return None
        value = self.items.pop(self.head)
        self.head += 1
        return value


def test_a_line_that_counts_what_it_is_given_waits_for_none(census):
    line = Line()
    for number in range(20):
        line.put(bytes(MIB) + bytes([number]))
    taken(census, 20 * MIB)
    for number in range(20, 60):
        line.put(bytes(MIB) + bytes([number]))
        if number % 4 == 0:
            line.get()
    found = holder(taken(census, 60 * MIB), "line.items")
    assert (found["taken_from"], found["in_order"]) == (True, False)


class Samples:
    seen = []

    def __init__(self, count, census, said, names):
        self.samples, self.names = [], names
        for number in range(count):
            if number in (count // 2, count - 1):
                said.append(taken(census, 3 * number * MIB))
            self.samples.append(bytes(MIB) + bytes([number]))
            self.names.append(bytes(MIB) + bytes([number]))
            Samples.seen.append(bytes(MIB) + bytes([number]))


def test_what_a_constructor_fills_is_no_collection_until_it_has_returned(census):
    said, names = [], []
    samples = Samples(40, census, said, names)
    found = {name: holder(said[1], name)["in_constructor"] for name in ("self.samples", "names")}
    assert found == {"self.samples": True, "names": False}
    seen = [one for one in said[1]["holders"] if one["name"].endswith("Samples.seen")]
    assert [one["in_constructor"] for one in seen] == [False]
    samples.samples += [bytes(MIB) + bytes([number]) for number in range(40)]
    assert holder(taken(census, 160 * MIB), "samples.samples")["in_constructor"] is False
    Samples.seen.clear()


def test_a_list_has_the_name_the_place_and_the_line_of_its_function(census):
    kept = [bytes(MIB) for _ in range(8)]
    taken(census, 8 * MIB)
    for _ in range(16):
        kept.append(bytes(MIB))
    found = holder(taken(census, 24 * MIB), "kept")
    assert (found["before"], found["length"], found["type"]) == (8, 24, "list")
    assert found["place"].startswith("test_a_list_has_the_name_the_place_and_the_line_of_its_function(), test_agent_")
    assert abs(found["more_bytes"] - 16 * MIB) < MIB and found["of_bytes"] == 16 * MIB
    lines = pathlib.Path(__file__).read_text().splitlines()
    file, _, number = found["line"].rpartition(":")
    assert file == "test_agent_census.py" and "kept.append" in lines[int(number) - 1]


def test_garbage_is_not_sought_in_what_long_lists_refer_to(census):
    garbage, longest, kept = sys.modules["_ullage_garbage"], [0], []

    def referents(*some):
        found = gc.get_referents(*some)
        longest.append(len(found))
        return found

    garbage.gc = types.SimpleNamespace(get_referents=referents, get_stats=gc.get_stats, get_count=gc.get_count)
    garbage.gc.get_threshold = gc.get_threshold
    gc.collect()
    kept += [list(range(100_000)), collections.deque(range(100_000)), dict.fromkeys(range(100_000), ())]
    found = garbage.count(sys.modules["_ullage_contents"].Contents())
    assert 3 <= found["looked"] and max(longest) <= garbage.LONG


def test_many_values_are_looked_past_and_many_objects_are_not(census):
    numbers = list(range(1 << 20, 4 << 20))
    assert taken(census, 100 * MIB)["objects"] < len(numbers) / 3
    objects = [[number] for number in range(1_000_001)]
    assert taken(census, 200 * MIB)["objects"] is None and objects


def enclosing():
    buffer = []

    def pick():
        return buffer[0]

    while True:
        buffer.append(bytes(MIB) + bytes([len(buffer)]))
        yield pick()


def test_a_local_that_a_function_inside_uses_too_is_a_local(census):
    stream = enclosing()
    for _ in range(8):
        next(stream)
    taken(census, 8 * MIB)
    for _ in range(16):
        next(stream)
    found = holder(taken(census, 24 * MIB), "buffer")
    assert found["place"].startswith("enclosing(), test_agent_census.py:") and found["length"] == 24


class Writer:
    def __init__(self):
        self.scalars = {f"weight_{number}": [] for number in range(200)}

    def add(self, number):
        for values in self.scalars.values():
            values.append([number, float(number), str(number) * 100])


def test_a_dict_whose_lists_become_longer_is_what_grows(census):
    writer, same = Writer(), {number: [bytes(40) for _ in range(number % 7)] for number in range(1000)}
    for number in range(20):
        writer.add(number)
    taken(census, MIB)
    for number in range(60):
        writer.add(number)
    message = taken(census, 8 * MIB)
    found = holder(message, "writer.scalars")
    assert (found["before"], found["length"], found["nested"], found["type"]) == (200 * 20, 200 * 80, True, "dict")
    assert found["more_bytes"] > 3 * MIB
    assert not [one for one in message["holders"] if one["name"] == "same"], same


class Task:
    """Keeps its error, as a scheduler's does, and its frame."""

    def __init__(self, number):
        self.error = self.frame = None
        try:
            self.run(number)
        except ValueError as error:
            self.error, self.frame = error, error.__traceback__.tb_next.tb_frame

    def run(self, number):
        batch = bytearray(MIB)
        raise ValueError(number, len(batch))


def test_an_element_that_keeps_an_exception_weighs_what_the_frames_of_its_traceback_hold(census):
    failed = [Task(number) for number in range(8)]
    taken(census, 8 * MIB)
    failed += [Task(number) for number in range(16)]
    found = holder(taken(census, 24 * MIB), "failed")
    assert found["errors"] == 1.0 and abs(found["more_bytes"] - 16 * MIB) < MIB


class Recording:
    def __init__(self):
        self.settings = bytearray(2 * MIB)

    @functools.cache  # noqa: B019
    def series(self, sweep):
        return bytearray(MIB // 4) + bytes([sweep])


def test_the_cache_of_a_method_weighs_the_instances_in_its_keys_once_each(census):
    read = [Recording.series(recording, sweep) for recording in [Recording() for _ in range(8)] for sweep in range(8)]
    del read
    taken(census, 32 * MIB)
    for _ in range(32):
        recording = Recording()
        for sweep in range(8):
            recording.series(sweep)
    del recording
    [found] = [one for one in taken(census, 160 * MIB)["holders"] if one["type"] == "lru_cache"]
    assert (found["before"], found["length"]) == (64, 320)
    assert abs(found["more_bytes"] - 128 * MIB) < 16 * MIB, found["more_bytes"] / MIB
    Recording.series.cache_clear()


def elements(root):
    return [xml.etree.ElementTree.SubElement(root, "record", {"value": str(number) * 400}) for number in range(2000)]


def all_below(root):
    yield from root


def test_what_an_object_of_c_refers_to_is_a_container(census):
    root = xml.etree.ElementTree.Element("export")
    elements(root)
    taken(census, 8 * MIB)
    for _ in range(4):
        elements(root)
    found = holder(taken(census, 16 * MIB), "root")
    assert (found["before"] // 1000, found["length"] // 1000) == (2, 10)
    assert found["type"] == "xml.etree.ElementTree.Element" and found["more_bytes"] > 8000 * 600


def test_what_only_a_suspended_generator_leads_to_has_its_name(census):
    def records():
        parsed = [bytes(MIB)]
        while True:
            parsed.extend([bytes(MIB) for _ in range(8)])
            yield len(parsed)

    for number in records():  # no name leads to it
        message = taken(census, number * MIB)
        if number > 10:
            break
    found = holder(message, "parsed")
    assert (found["before"], found["length"]) == (9, 17) and found["place"].startswith("records()")


class Provider:
    def __init__(self):
        self.pages = bytearray(MIB)
        atexit.register(self.close)

    def close(self):
        self.pages = None


def test_functions_registered_to_run_at_the_end_hold_what_they_are_bound_to(census):
    registered = [Provider() for _ in range(40)]
    del registered
    taken(census, 40 * MIB)
    for _ in range(40):
        Provider()
    found = holder(taken(census, 80 * MIB), "Provider.close()")
    assert found["by_hook"] and found["type"] == "callbacks" and (found["before"], found["length"]) == (40, 80)
    assert abs(found["more_bytes"] - 40 * MIB) < 8 * MIB, found["more_bytes"] / MIB


class Run:
    """Is registered to be closed at the end, with what it refers to, and stays so though it was closed."""

    def __init__(self, torch, logger):
        self.model = torch.nn.Linear(512, 512)
        self.logger = logger
        self.again = self  # a circle, which the collector would find


def close(run, logger):
    pass


class Strategy:
    """Hooks a graph of its own, by which it is held in C++."""

    def __init__(self, torch):
        self.covariance = torch.ones(512, 512, requires_grad=True).cos()
        self.mean = self.covariance.sum(1)
        self.handle = self.mean.grad_fn.register_hook(functools.partial(cleared, self))
        HOOKED.add(self)


def cleared(strategy, *_):
    strategy.mean = None


class Logger:
    pass


def at_exit(torch, number):
    for _ in range(number):
        run = Run(torch, Logger())
        atexit.register(close, run, run.logger)


def hooked(torch, number):
    for _ in range(number):
        Strategy(torch)


class Chain:
    """What no container holds."""

    newest = None

    def __init__(self, run, before):
        self.run, self.before = run, before


def kept(torch, number):
    for _ in range(number):
        Chain.newest = Chain(Run(torch, None), Chain.newest)
        atexit.register(close, Chain.newest.run, None)


HOOKED = weakref.WeakSet()


@pytest.mark.parametrize(
    ("how", "name"), [(at_exit, "(Run, Logger)"), (hooked, "cleared()"), (kept, None)], ids=["atexit", "hook", "kept"]
)
def test_what_only_native_code_holds_above_tensors_is_named(census, how, name):
    torch = pytest.importorskip("torch")
    try:
        how(torch, 20)
        taken(census, 20 * MIB)
        how(torch, 20)
        found = [one for one in taken(census, 40 * MIB)["holders"] if one["type"] == "callbacks"]
    finally:
        atexit.unregister(close)
        Chain.newest = None
        for one in list(HOOKED):
            one.handle.remove()
    assert [one["name"] for one in found] == [name] * (name is not None)
    if found:
        assert (found[0]["deep"], found[0]["before"], found[0]["length"]) == (True, 20, 40), found
        assert abs(found[0]["more_bytes"] - 20 * MIB) < 4 * MIB, found[0]["more_bytes"] / MIB


class Dataset:
    def __init__(self):
        self.cache = {}

    def read(self, index):
        self.cache[index] = bytes(MIB)


def test_an_attribute_has_its_class_and_the_line_in_its_method(census):
    dataset = Dataset()
    for number in range(10):
        dataset.read(number)
    taken(census, 10 * MIB)
    for number in range(10, 40):
        dataset.read(number)
    found = holder(taken(census, 40 * MIB), "dataset.cache")
    assert found["owner"].endswith("test_agent_census.Dataset")
    lines = pathlib.Path(__file__).read_text().splitlines()
    assert "self.cache[index] =" in lines[int(found["line"].rpartition(":")[2]) - 1]


class Pipeline:
    """As a loader's fetcher holds the generator of a dataset, and that another one."""

    def __init__(self, iterator):
        self.iterator = iterator


def shuffled(samples, window):
    buffer = []
    for sample in samples:
        buffer.append(sample)
        yield window


async def served(requests):
    answers = []
    for _ in requests:
        answers.append(bytes(MIB))
        await Turn()


class Turn:
    def __await__(self):
        yield


def delegating(of):
    yield from of


@pytest.mark.parametrize("make", ["generator", "delegated", "coroutine"])
def test_what_a_suspended_function_holds_has_its_name_there(census, make):
    samples = (bytes(MIB) for _ in range(1_000))
    if make == "coroutine":
        name, place, pipeline = "answers", "served()", Pipeline(served(range(1_000)))
        steps = iter(lambda: pipeline.iterator.send(None), 0)
    else:
        inner = shuffled(samples, 10)
        name, place = "buffer", "shuffled()"
        pipeline = Pipeline(inner if make == "generator" else delegating(delegating(inner)))
        steps = pipeline.iterator
        del inner
    for _ in range(8):
        next(steps)
    taken(census, 8 * MIB)
    for _ in range(16):
        next(steps)
    found = holder(taken(census, 24 * MIB), name)
    assert found["place"].startswith(place + ", test_agent_census.py:"), found["place"]
    assert (found["before"], found["length"], found["owner"]) == (8, 24, "")
    lines = pathlib.Path(__file__).read_text().splitlines()
    assert name + ".append" in lines[int(found["line"].rpartition(":")[2]) - 1]


@functools.cache
def cached(number):
    return bytes(MIB)


def test_a_cached_function_and_a_list_of_another_function(census):
    kept = []

    def deep(steps):
        for number in range(steps):
            kept.append(bytes(MIB))
            cached(number)

    deep(10)
    taken(census, 20 * MIB)
    deep(30)
    message = taken(census, 60 * MIB)
    found = [one for one in message["holders"] if one["type"] == "lru_cache"]
    assert found and "cached" in found[0]["name"] and found[0]["length"] == 30
    assert holder(message, "kept")["before"] == 10
    cached.cache_clear()


def test_what_falls_and_what_rests_is_not_told(census):
    rests = [bytes(MIB) for _ in range(20)]
    falls = [bytes(MIB) for _ in range(20)]
    taken(census, 40 * MIB)
    del falls[10:]
    message = taken(census, 60 * MIB)
    assert not [one for one in message["holders"] if one.get("name") in ("rests", "falls")]
    assert len(rests) == 20


def test_a_value_that_is_made_anew_and_longer(census):
    numpy = pytest.importorskip("numpy")
    everything = numpy.zeros(2 * MIB, numpy.uint8)
    taken(census, 2 * MIB)
    everything = numpy.concatenate([everything, numpy.zeros(6 * MIB, numpy.uint8)])
    found = holder(taken(census, 8 * MIB), "everything")
    assert (found["before"], found["length"]) == (2 * MIB, 8 * MIB)


def test_a_list_that_was_made_beforehand_grows_by_what_is_put_into_it(census):
    images = [None] * 1000
    images[::100] = [bytes(MIB) for _ in range(10)]
    taken(census, 10 * MIB)
    images[1::50] = [bytes(MIB) for _ in range(20)]
    found = holder(taken(census, 30 * MIB), "images")
    assert (found["before"], found["length"], found["element"]) == (10, 30, "bytes")
    assert abs(found["more_bytes"] - 20 * MIB) < MIB


def test_lists_of_empty_lists_grow_by_what_takes_their_places(census):
    boxes = [[[] for _ in range(300)] for _ in range(80)]

    def detect(images):
        for image in images:
            for of_class in boxes:
                of_class[image] = bytes(5_000)

    detect(range(20))
    taken(census, 8 * MIB)
    detect(range(20, 120))
    found = holder(taken(census, 48 * MIB), "boxes")
    assert found["nested"] and found["type"] == "list"
    assert 0.8 < found["more_bytes"] / (80 * 100 * 5_000) < 1.4


def test_an_array_of_objects_grows_by_what_is_put_into_it(census):
    numpy = pytest.importorskip("numpy")
    features = numpy.empty(1000, dtype=object)
    features[:10] = [bytes(MIB) for _ in range(10)]
    taken(census, 10 * MIB)
    features[10:30] = [bytes(MIB) for _ in range(20)]
    found = holder(taken(census, 30 * MIB), "features")
    assert (found["before"], found["length"], found["type"]) == (10, 30, "array of objects")
    assert abs(found["more_bytes"] - 20 * MIB) < MIB


class Frame:
    def __init__(self, block):
        self.block = block


def test_views_inside_a_librarys_object_are_seen(census):
    numpy = pytest.importorskip("numpy")
    heads = {}

    def read(numbers):
        for number in numbers:
            heads[number] = Frame(numpy.ones(1 << 17)[:5])

    read(range(10))
    taken(census, 10 * MIB)
    read(range(10, 40))
    found = holder(taken(census, 40 * MIB), "heads")
    assert found["views"] == 1.0 and found["bytes"] >= 38 * MIB and found["own_bytes"] < MIB


def test_what_a_librarys_class_holds_has_its_name(census):
    library = types.ModuleType("plotting")
    library.__file__ = "/usr/lib/site-packages/plotting.py"
    sys.modules["plotting"] = library
    exec("class Open:\n    figures = {}", library.__dict__)
    try:
        library.Open.figures.update({number: [bytes(MIB)] for number in range(40)})
        taken(census, 40 * MIB)
        library.Open.figures.update({number: [bytes(MIB)] for number in range(40, 80)})
        found = holder(taken(census, 80 * MIB), "plotting.Open.figures")
        assert found["owner"] == "plotting.Open" and (found["before"], found["length"]) == (40, 80)
    finally:
        del sys.modules["plotting"]


def test_among_very_many_objects_long_containers_and_tensors_are_still_counted(census):
    torch = pytest.importorskip("torch")
    many = [{"number": [number]} for number in range(150_000)]
    held = [[torch.ones(1 << 18) for _ in range(40)]]
    taken(census, 40 * MIB)
    held[0].extend([torch.ones(1 << 18) for _ in range(40)])
    message = taken(census, 80 * MIB)
    assert message["objects"] > 300_000, len(many)
    group = next(one for one in message["tensors"]["groups"] if one["tensors"] == "[262144] float32")
    assert (group["count_before"], group["count"]) == (40, 80)
    assert max(one["more_bytes"] for one in message["holders"]) > 36 * MIB


def test_losses_carry_their_graphs(census):
    torch = pytest.importorskip("torch")
    net = torch.nn.Linear(256, 256)
    losses = []

    def steps(number):
        for _ in range(number):
            losses.append(net(torch.randn(1024, 256)).relu().mean())

    steps(10)
    taken(census, 10 * MIB)
    steps(20)
    found = holder(taken(census, 70 * MIB), "losses")
    assert found["graph"] == 1.0 and found["before"] == 10
    if hasattr(torch._C._autograd.SavedTensor, "unpack_hook"):
        # Each step saved its batch and what came out of relu: 1 MiB each.
        assert 36 * MIB <= found["hidden_bytes"] <= 44 * MIB


def test_a_sum_of_losses_reaches_back_and_a_loss_does_not(census):
    torch = pytest.importorskip("torch")
    net = torch.nn.Linear(64, 64)
    total, loss = 0, None
    for _ in range(20):
        loss = net(torch.randn(64, 64)).mean()
        total = total + loss
    taken(census, 10 * MIB)
    for _ in range(100):
        loss = net(torch.randn(64, 64)).mean()
        total = total + loss
    graphs = taken(census, 20 * MIB)["graphs"]
    assert [one["name"] for one in graphs] == ["total"], loss
    assert graphs[0]["operations"] > 300 and graphs[0]["line"]


@pytest.mark.parametrize("kind", ["GRUCell", "sum", "mixed"])
def test_a_graph_with_side_branches_is_gone_back_along(census, kind):
    torch = pytest.importorskip("torch")
    cell, linear = torch.nn.GRUCell(8, 8), torch.nn.Linear(8, 8)
    state = torch.zeros(2, 8)

    def steps(number):
        nonlocal state
        for _ in range(number):
            x = torch.randn(2, 8)
            if kind == "GRUCell":
                state = cell(x, state)
            elif kind == "sum":
                state = state + linear(x).mean() + x.square().mean()
            else:
                state = torch.tanh(linear(state) + linear(x))

    steps(50)
    taken(census, 10 * MIB)
    steps(300)
    (graph,) = [one for one in taken(census, 70 * MIB)["graphs"] if one["name"].startswith("state")]
    assert graph["operations"] >= graph["before"] + 900


def test_a_graph_weighs_what_only_it_holds(census):
    """An input that wants a gradient, and of which a layer saves a view: no weight."""
    torch = pytest.importorskip("torch")
    layer, total = torch.nn.Linear(4096, 4), 0

    def steps(number):
        nonlocal total
        for _ in range(number):
            x = torch.ones(4, 64, 64, requires_grad=True)
            total = total + layer(x.flatten(1)).mean()

    steps(20)
    taken(census, 10 * MIB)
    steps(200)
    (graph,) = [one for one in taken(census, 70 * MIB)["graphs"] if one["name"].startswith("total")]
    assert graph["more_bytes"] > 200 * 4 * 64 * 64 * 4 * 0.7


def test_nothing_is_asked_of_a_weight_of_the_programs_own_class(census):
    torch = pytest.importorskip("torch")
    asked = []

    class Weight(torch.nn.Parameter):
        requires_grad = property(lambda self: asked.append(self) or True)

    weight = Weight(torch.eye(8))
    state = torch.zeros(1, 8, requires_grad=True)

    def steps(number):
        nonlocal state
        for _ in range(number):
            state = torch.tanh(torch.nn.functional.linear(state, weight))

    steps(20)
    taken(census, 10 * MIB)
    steps(300)
    assert [one for one in taken(census, 70 * MIB)["graphs"] if one["name"].startswith("state")]
    asked.clear()
    taken(census, 120 * MIB)
    assert not asked


@pytest.mark.parametrize("weights", ["parameter", "frozen", "buffer"])
def test_a_graph_does_not_weigh_the_weights_of_each_step(census, weights):
    """They are the model's, and each step's operations save a view of them."""
    torch = pytest.importorskip("torch")
    layer = torch.nn.Linear(1000, 1000, bias=False).requires_grad_(weights == "parameter")
    weight = layer.weight.detach().clone().t() if weights == "buffer" else None
    first = torch.zeros(1, 1000, requires_grad=True)

    def steps(state, number):
        for _ in range(number):
            state = torch.tanh(state @ weight if weight is not None else layer(state))
        return state

    state = steps(first, 20)
    taken(census, 10 * MIB)
    state = steps(state, 600)
    (graph,) = [one for one in taken(census, 70 * MIB)["graphs"] if one["name"] == "state"]
    each = graph["more_bytes"] / (graph["operations"] - graph["before"])
    # tanh saves what it gives, which the product after it saves as well.
    assert 1000 < each < 6000


@pytest.mark.parametrize("kind", ["a few", "some", "many"])
def test_which_tensors_are_chosen_is_chance_and_no_growth(census, kind):
    torch = pytest.importorskip("torch")
    large = [torch.ones(MIB + number) for number in range(20)]
    small = [torch.ones(3) for _ in range(6000)]
    taken(census, 10 * MIB)
    many = [torch.ones(5, 1000) for _ in range({"a few": 4, "some": 200, "many": 2000}[kind])]
    groups = {one["tensors"]: one for one in taken(census, 70 * MIB)["tensors"]["groups"]}
    assert not [name for name in groups if name.startswith("[1048")] and len(large) == 20
    assert ("[5, 1000] float32" in groups) == (kind != "a few")
    if kind != "a few":
        assert len(many) / 2 < groups["[5, 1000] float32"]["count"] < 2 * len(many)
    assert len(small) == 6000


def test_gradients_with_a_graph_are_counted_and_torchs_warning_is_seen(census):
    torch = pytest.importorskip("torch")
    weight = torch.nn.Parameter(torch.ones(4, 4))
    assert taken(census, 10 * MIB)["grads"]["with_graph"] == 0
    with pytest.warns(UserWarning, match="create_graph"):
        weight.square().sum().backward(create_graph=True)
    grads = taken(census, 60 * MIB)["grads"]
    assert grads["with_graph"] == 1 and grads["tensor"] == "[4, 4] float32"
    weight.grad = None
    assert taken(census, 90 * MIB)["grads"]["with_graph"] == 0


def test_losses_whose_graph_was_freed_keep_nothing(census):
    torch = pytest.importorskip("torch")
    net = torch.nn.Linear(256, 256)
    losses, total = [], 0

    def steps(number):
        nonlocal total
        for _ in range(number):
            loss = net(torch.randn(128, 256)).relu().mean()
            loss.backward()
            losses.append(loss)
            total = total + loss

    steps(10)
    taken(census, 10 * MIB)
    steps(200)
    message = taken(census, 70 * MIB)
    (graph,) = message["graphs"]
    assert 0 < graph["more_bytes"] < MIB, "its nodes only"
    assert not [one for one in message["holders"] if one["name"] == "losses"]


def test_what_a_function_of_the_programs_own_saved_is_seen(census):
    torch = pytest.importorskip("torch")
    if not hasattr(torch._C._autograd.SavedTensor, "unpack_hook"):
        pytest.skip("this torch does not tell what is saved")

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, value):
            ctx.save_for_backward(value + 1)
            return 2 * value

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad

    leaf = torch.ones(256, 1024, requires_grad=True)
    kept = [Double.apply(leaf) for _ in range(10)]
    taken(census, 10 * MIB)
    kept += [Double.apply(leaf) for _ in range(10)]
    assert holder(taken(census, 30 * MIB), "kept")["hidden_bytes"] == 10 * MIB


def test_the_graph_of_one_long_step_is_not_one_that_grows(census):
    torch = pytest.importorskip("torch")
    weight = torch.ones(64, requires_grad=True)

    def step(length):
        value = weight
        for _ in range(length):
            value = value * 1.01
        return value

    value = step(10)
    taken(census, 10 * MIB)
    value = step(2000)
    assert taken(census, 60 * MIB)["graphs"] == [], value


def test_a_list_that_a_hook_fills_says_so(census):
    torch = pytest.importorskip("torch")
    net = torch.nn.Linear(512, 512)
    features = []
    net.register_forward_hook(lambda module, inputs, output: features.append(output.detach()))
    for _ in range(10):
        net(torch.ones(512, 512))
    taken(census, 10 * MIB)
    for _ in range(20):
        net(torch.ones(512, 512))
    assert holder(taken(census, 30 * MIB), "features")["by_hook"] is True


def test_rows_keep_their_batches_and_rows_of_one_batch_do_not(census):
    torch = pytest.importorskip("torch")
    views = [torch.ones(1024, 256)[0] for _ in range(10)]
    whole = torch.ones(1024, 256)
    rows = list(whole[:10])
    taken(census, 12 * MIB)
    views += [torch.ones(1024, 256)[0] for _ in range(20)]
    rows += list(whole[10:900])
    found = holder(taken(census, 32 * MIB), "views")
    assert found["views"] == 1.0 and abs(found["bytes"] - 30 * MIB) < MIB and found["own_bytes"] < MIB
    assert sys.modules["_ullage_contents"].Contents().into(rows, list)["bytes"] < 2 * MIB


class Child:
    def __init__(self, parent, name):
        self.parent, self.name, self.options = parent, name, {"level": name * 2}
        if parent is not None:
            parent.children[name] = self
        self.children = {}


def test_elements_that_lead_to_their_parent_do_not_weigh_all_that_it_holds(census):
    root = Child(None, "root")
    root.table = {number: bytes(100) for number in range(20_000)}
    for number in range(2000):
        Child(root, f"child {number}")
    taken(census, 0)
    for number in range(2000, 10_000):
        Child(root, f"child {number}")
    found = holder(taken(census, 16 * MIB), "root.children")
    one = root.children["child 5000"]
    # Its own, its two dicts with what they hold, and its place in the parent's.
    own = sum([sys.getsizeof(part) for part in (one, one.__dict__, one.name, one.options, one.children)])
    assert 0.7 * own < found["more_bytes"] / 8000 < 3 * own


def test_the_only_element_and_one_that_stands_in_many_places_weigh_what_they_are(census):
    contents = sys.modules["_ullage_contents"].Contents()
    table = {number: bytes(1000) for number in range(2000)}
    assert contents.into([table], list)["bytes"] > 1.9 * MIB
    assert contents.into([table] * 500, list)["bytes"] < MIB
    assert contents.into([dict(table) for _ in range(3)], list)["bytes"] < 3 * MIB


def test_classes_that_are_made_anew_weigh_what_they_hold_and_others_do_not(census):
    contents = sys.modules["_ullage_contents"].Contents()
    made = [type("Made", (), {"rows": [bytes(1000) for _ in range(100)]}) for _ in range(20)]
    assert contents.into(made, list)["bytes"] > 1.9 * MIB
    assert contents.into([unittest.TestCase, unittest.TestSuite] * 10, list)["bytes"] < MIB / 10


def test_what_an_exception_in_a_key_keeps_is_come_to_past_all_that_stands_beside_it(census):
    class Logger:
        """Leads to many others."""

        def __init__(self, number):
            self.number, self.others = number, []

    def failed():
        rows = {"engine": {"model": {"layers": [{"block": [bytearray(MIB)]}]}}}
        try:
            raise ValueError(len(rows))
        except ValueError as error:
            return error

    logger = Logger(0)
    logger.others = [Logger(number) for number in range(500)]
    contents = sys.modules["_ullage_contents"].Contents()
    found = contents.into({(logger, "failed", failed()): None for _ in range(20)}, dict)
    assert found["bytes"] > 19 * MIB and found["errors"] == 1.0


def test_what_a_function_hands_on_is_in_the_frames_once(census):
    def parse(rows):
        raise ValueError(len(rows))

    def step(rows):
        parse(rows)

    def failed(number):
        try:
            step([{"a": f"{number} {row}"} for row in range(2000)])
        except ValueError as error:
            return error

    contents = sys.modules["_ullage_contents"].Contents()
    rows = [{"a": f"99 {row}"} for row in range(2000)]
    each = sum([sys.getsizeof(part) for row in rows for part in (row, row["a"])]) + sys.getsizeof(rows)
    found = contents.into([failed(number) for number in range(20)], list)
    assert found["errors"] == 1.0 and 0.6 * each < found["bytes"] / 20 < 1.5 * each


def test_elements_that_lead_to_each_other_weigh_together_what_is_there(census):
    class Put:
        def __init__(self, before):
            self.before, self.values = before, bytearray(MIB)

    chain = [Put(None)]
    for _ in range(300):
        chain.append(Put(chain[-1]))
    mixed = [chain[number * 97 % 301] for number in range(301)]
    contents = sys.modules["_ullage_contents"].Contents()
    assert 200 * MIB < contents.into(mixed, list, chained=True)["bytes"] < 400 * MIB
    apart = [Put(None) for _ in range(301)]
    assert 290 * MIB < contents.into(apart, list, chained=True)["bytes"] < 310 * MIB


def test_tasks_and_futures_that_wait_are_called_pending(census):
    contents = sys.modules["_ullage_contents"].Contents()

    async def row(data):
        await asyncio.sleep(0 if data is None else 60)

    async def labels():
        waiting = [asyncio.create_task(row(bytes(1000))) for _ in range(50)]
        done = [asyncio.create_task(row(None)) for _ in range(50)]
        await asyncio.wait(done)
        found = [contents.into(some, list)["element"] for some in (waiting, done)]
        for one in waiting:
            one.cancel()
        return found

    assert asyncio.run(labels()) == ["_asyncio.Task (pending)", "_asyncio.Task"]

    async def mixed(pending):
        done = asyncio.create_task(asyncio.sleep(0))
        await done
        waiting = [asyncio.create_task(asyncio.sleep(9)) for _ in range(pending)]
        lines = sys.modules["_ullage_lines"].Lines()
        kept = dict(enumerate([done] * 20 + waiting))
        found = lines.element(kept, "_asyncio.Task (pending) with Tensor [3]"), lines.element([kept], "a (pending)")
        for one in waiting:
            one.cancel()
        return found

    # Of those that were done their results may be small.
    assert asyncio.run(mixed(4)) == ("_asyncio.Task with Tensor [3]", "a (pending)")
    assert "(" in asyncio.run(mixed(40))[0]
    future = concurrent.futures.Future()
    assert contents.into([future] * 3, list)["element"] == "concurrent.futures._base.Future (pending)"
    future.set_result(None)
    assert contents.into([future] * 3, list)["element"] == "concurrent.futures._base.Future"


def test_tasks_that_wait_for_work_stand_in_no_line(census):
    pending = "_asyncio.Task (pending) with Tensor [1]"
    serving = "_asyncio.Task (serving) with Tensor [1]"

    async def serves(queue):
        async for _ in items(queue):
            pass

    async def items(queue):
        while (item := await queue.get()) is not None:
            yield item

    async def told(wait, kind=set, end=0):
        lines = sys.modules["_ullage_lines"].Lines()
        tasks = [asyncio.create_task(wait()) for _ in range(30)]
        container = dict(enumerate(tasks)) if kind is dict else kind(tasks)
        assert lines.element(container, pending) == pending, "they have not begun"
        await asyncio.sleep(0.01)
        found = [lines.element(container, pending)]
        lines.next()
        for task in tasks[:end]:
            task.cancel()
        await asyncio.sleep(0.01)
        found.append(lines.element(container, pending))
        assert lines.element(container, "function") == "function"
        lines.next()
        lines.next()
        assert lines.element(container, pending) == found[0], "it was not asked for in between"
        for task in tasks:
            task.cancel()
        return found

    async def check():
        room, full, event = asyncio.Semaphore(0), asyncio.Queue(1), asyncio.Event()
        condition, reader, held = asyncio.Condition(), asyncio.StreamReader(), threading.Event()
        full.put_nowait(None)

        async def idle():
            await serves(asyncio.Queue())

        async def acquires():
            async with condition:
                await condition.wait()

        async def notified():
            async with condition:
                await condition.wait()

        class Call:
            def __await__(self):
                return room.acquire().__await__()

        async def calls():
            await Call()

        for kind in (set, list, dict):
            assert await told(idle, kind, end=2) == [serving, serving], "two of thirty clients left"
            assert await told(idle, kind, end=4) == [serving, pending], "a line moves"

        async def handle_connection():
            await asyncio.wait_for(event.wait(), 60)

        for waits in (event.wait, notified, handle_connection):
            assert await told(waits) == [serving, serving]
        in_executor = functools.partial(asyncio.get_running_loop().run_in_executor, None, held.wait)

        async def in_thread():
            await in_executor()

        for waits in (room.acquire, lambda: full.put(1), calls, acquires, lambda: asyncio.sleep(60), in_thread):
            assert await told(waits) == [pending, pending]
        held.set()
        task = asyncio.create_task(reader.readline())
        await asyncio.sleep(0.01)
        assert sys.modules["_ullage_kinds"].waits_for_work(task)
        task.cancel()

    asyncio.run(check())


@functools.lru_cache(maxsize=5000)
def bounded_features(number):
    return bytes(10_000 + number)


@functools.lru_cache(maxsize=1 << 40)
def features_without_end(number):
    return bytes(10_000 + number)


@pytest.mark.parametrize("function, bounded", [(bounded_features, True), (features_without_end, False)])
def test_a_cache_with_a_bound_weighs_its_results_and_says_so(census, function, bounded):
    cached = function
    for number in range(100):
        cached(number)
    taken(census, 0)
    for number in range(100, 1100):
        cached(number)
    (found,) = [one for one in taken(census, 10 * MIB)["holders"] if one["type"] == "lru_cache"]
    assert (found["before"], found["length"], found["bounded"]) == (100, 1100, bounded)
    assert abs(found["more_bytes"] - 1000 * 10_700) < MIB
    function.cache_clear()


def test_threads_that_run_are_not_callbacks(census):
    end = threading.Event()
    taken(census, 0)
    threads = [threading.Thread(target=end.wait, args=(60,)) for _ in range(40)]
    for one in threads:
        one.start()
    found = [one for one in taken(census, 16 * MIB)["holders"] if one["type"] == "callbacks"]
    end.set()
    for one in threads:
        one.join()
    assert not found


def walked(paths):
    return list(paths.walk(time.thread_time() + 5))  # pytest's asserts ask for locals, and so no walk reads those


def test_an_array_under_a_name_can_be_resized_meanwhile_and_has_its_name(census):
    numpy = pytest.importorskip("numpy")
    owner = Owner()
    owner.other = numpy.zeros(MIB)
    own = sys.getrefcount(owner.other)
    paths = sys.modules["_ullage_paths"]
    spots = walked(paths)
    # Another reference to it, and numpy would refuse.
    after = sys.getrefcount(owner.other)
    assert after == own
    names = [paths.name(spot) for spot in spots if paths.type_of(spot[0]) is numpy.ndarray]
    assert [name for name in names if name.startswith("owner.other in ")], names
    del spots
    taken(census, 8 * MIB)
    owner.other.resize(3 * MIB)
    found = holder(taken(census, 24 * MIB), "owner.other")
    assert found["type"] == "numpy.ndarray" and found["more_bytes"] == 16 * MIB


def test_no_tuple_in_the_making_is_handed_out(census):
    common, from_below = sys.modules["_ullage_common"], sys.modules["_ullage_from_below"]
    seen = []

    class Short:
        """Says that it has one item."""

        def __init__(self, one):
            self.one = one

        def __len__(self):
            return 1

        def __iter__(self):
            yield self.one
            # The tuple has it now, and nothing has the tuple.
            seen.append(len([one for one in from_below.finished(gc.get_referrers(self.one)) if type(one) is tuple]))
            young = [one for one in common.newest(0, 1 << 20)[0] if type(one) is tuple and len(one) < 10]
            seen.append(len([one for one in young if len(one) and one[0] is self.one]))
            del young
            yield self.one

    one = Node(None, b"")
    gc.collect()
    kept = (one, 1), [tuple([one])]
    assert tuple(Short(one)) == (one, one) and seen == [0, 2]
    del kept


class Node:
    def __init__(self, earlier, data):
        self.earlier, self.data = earlier, data


class Owner:
    def __init__(self):
        self.newest, self.other = None, [bytes(100) for _ in range(20)]


def test_a_chain_of_nodes_is_told_by_the_name_that_leads_to_it(census):
    owner = Owner()
    for _ in range(500):
        owner.newest = Node(owner.newest, bytes(10_000))
    taken(census, 0)
    for _ in range(1000):
        owner.newest = Node(owner.newest, bytes(10_000))
    found = holder(taken(census, 10 * MIB), "owner.newest")
    assert found["deep"] and found["type"].endswith("Node") and found["owner"].endswith("Owner")
    # A node, its dict or its values, and its bytes.
    assert 1000 <= found["length"] - found["before"] <= 3000
    assert abs(found["more_bytes"] - 1000 * 10_200) < MIB and found["of_bytes"] == 10 * MIB


@pytest.mark.parametrize("told", [False, True])
def test_what_waits_in_a_queue_that_was_told_of_hangs_below_no_name(census, told):
    class Queue:
        def __init__(self):
            self.items = collections.deque()

    queues = [Queue()]

    def fill(number):
        # Each is a chain, so that no container becomes longer.
        for _ in range(number):
            queues[0].items = collections.deque([Node(queues[0].items, bytes(10_000))])

    fill(500)
    backlog = types.SimpleNamespace(waiting=lambda: [queues[0].items] if told else [])
    sys.modules["_ullage_backlog"] = backlog
    taken(census, 0)
    fill(1000)
    deep = [one for one in taken(census, 10 * MIB)["holders"] if one.get("deep")]
    assert bool(deep) != told, deep


def test_a_tree_whose_nodes_show_little_of_their_tensors_hides_the_rest(census):
    torch = pytest.importorskip("torch")
    tree = {"children": {}}

    def grow(numbers):
        for number in numbers:
            node = tree
            for key in (number // 100, number // 10, number):
                node = node["children"].setdefault(key, {"children": {}})
            node["value"] = torch.zeros(50_000)[:10]

    grow(range(100))
    taken(census, 0)
    grow(range(100, 300))
    found = holder(taken(census, 38 * MIB), "tree['children']")
    assert found["deep"] and found["views"] == 1.0 and found["own_bytes"] < MIB
    assert abs(found["more_bytes"] - 200 * 200_000) < 2 * MIB


class Connection(threading.local):
    def __init__(self):
        self.buffer = bytes(MIB // 2)


def test_what_a_local_holds_for_each_thread_is_told_as_that(census):
    connection, over = Connection(), threading.Event()

    def work(ready):
        connection.buffer = bytes(MIB)
        ready.set()
        over.wait()

    def start(count):
        for _ in range(count):
            ready = threading.Event()
            threading.Thread(target=work, args=(ready,), daemon=True).start()
            ready.wait()

    try:
        start(10)
        taken(census, 0)
        start(30)
        found = holder(taken(census, 32 * MIB), "connection")
    finally:
        over.set()
    assert found["type"] == "threading.local" and found["length"] - found["before"] == 30


class Sentence:
    def __init__(self, shared):
        self.tokens = [[{}] for _ in range(5)]
        self.shared = shared


def filled(census, monkeypatch, fill):
    """What is told of 4,000 sentences after `fill(sentences, part)` twice, where there are too many objects."""
    depths = agent_parts.common(receiver.library()).load("depths")
    monkeypatch.setattr(depths, "MOST", 5_000)
    shared = []
    sentences = [Sentence(shared) for _ in range(4_000)]
    fill(sentences, 0.1)
    taken(census, 0)
    fill(sentences, 0.6)
    return [one for one in taken(census, 100 * MIB)["holders"] if one.get("deep")]


def test_elements_that_are_filled_one_after_the_other_are_seen_among_very_many_objects(census, monkeypatch):
    def fill(sentences, part):
        for sentence in sentences[: int(part * len(sentences))]:
            for token in sentence.tokens:
                token[0].setdefault("embedding", bytes(10_000))

    (found,) = filled(census, monkeypatch, fill)
    assert found["name"] == "sentences" and found["type"] == "list"
    assert abs(found["more_bytes"] - 0.5 * 4_000 * 5 * 10_000) < 15 * MIB
    assert found["views"] == 0.0 and found["of_bytes"] == 100 * MIB


class Pooled:
    def __init__(self):
        self.queries, self.others = [], []


class Record:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


def test_the_callbacks_of_a_future_that_never_ends_are_told_by_its_name(census, monkeypatch):
    depths = agent_parts.common(receiver.library()).load("depths")
    monkeypatch.setattr(depths, "MOST", 30_000)
    loop, coordinator = asyncio.new_event_loop(), Pooled()
    coordinator.never = loop.create_future()

    def wait(number):
        records = [Record(bytes([number % 256]) * 4_000) for _ in range(10)]
        coordinator.never.add_done_callback(lambda _: records)

    try:
        for number in range(100):
            wait(number)
        taken(census, 0)
        for number in range(2_000):
            wait(number)
        # Never gone through before there was too much: what was added stands at the end of its list.
        (found,) = [one for one in taken(census, 80 * MIB)["holders"] if one.get("deep")]
    finally:
        loop.close()
    assert found["name"] == "coordinator.never" and found["owner"] == "_asyncio.Future"
    assert abs(found["more_bytes"] - 2_000 * 10 * 4_000) < 12 * MIB and found["of_bytes"] == 80 * MIB


def test_one_attribute_of_many_instances_counts_as_a_whole(census):
    pool = {number: Pooled() for number in range(10)}

    def ask(some):
        for one in pool.values():
            one.queries.extend([{"sql": bytes(100_000)} for _ in range(some)])

    ask(20)
    taken(census, 0)
    ask(30)
    module = sys.modules["_ullage_census"]
    module.MOST_WEIGHED = 6  # there is no time for all: the others count by their elements
    (found,) = [one for one in taken(census, 30 * MIB)["holders"] if one["name"].endswith(".queries")]
    assert found["owner"].endswith("Pooled") and found["alike"] == 10
    assert (found["length"], found["before"]) == (500, 200)
    assert abs(found["more_bytes"] - 10 * 30 * 100_000) < 3 * MIB


def counted_alike(census, pool, fill):
    """What is said of `queries` of all of a pool after 20 elements each and 30 more."""
    for more in (20, 30):
        for _ in range(more):
            fill(list(pool.values()))
        message = taken(census, 0 if more == 20 else 30 * MIB)
    return [one for one in message["holders"] if one["name"].endswith(".queries")]


class Odd(type):
    def __eq__(cls, other):
        raise SystemExit("code of the program runs")

    __hash__ = type.__hash__


class Row(metaclass=Odd):
    def __init__(self):
        self.values = bytes(100_000)


def test_types_of_elements_are_not_asked_whether_they_are_equal(census):
    (found,) = counted_alike(
        census,
        {number: Pooled() for number in range(10)},
        lambda pool: [one.queries.append(Row()) for one in pool],
    )
    assert found["alike"] == 10


def test_what_all_instances_list_is_held_once(census):
    def publish(pool):
        message = bytes(MIB)
        for one in pool:
            one.queries.append(message)

    found = counted_alike(census, {number: Pooled() for number in range(10)}, publish)
    assert found and not any([one.get("alike") for one in found])


@pytest.mark.parametrize("common", [None, 7])
def test_a_small_value_at_the_end_of_all_is_nothing_that_they_share(census, common):
    def ask(pool):
        for one in pool:
            one.queries[-1:] = [{"sql": bytes(100_000)}, common]

    (found,) = counted_alike(census, {number: Pooled() for number in range(10)}, ask)
    assert found["alike"] == 10


def test_results_of_one_step_keep_its_graph_once(census):
    torch = pytest.importorskip("torch")
    weight = torch.ones(1 << 16, requires_grad=True)

    def step(pool):
        hidden = (weight * 1.5).exp()
        for one in pool:
            one.queries.append(hidden.sum())

    (found,) = counted_alike(census, {number: Pooled() for number in range(8)}, step)
    assert found["alike"] == 8
    assert 10 * MIB < found["more_bytes"] + found["hidden_bytes"] <= 31 * MIB


def test_instances_that_were_unnamed_at_the_last_census_are_compared_with_themselves(census):
    pool = [Pooled() for _ in range(60)]
    for number, one in enumerate(pool):
        one.queries.extend([bytes(10_000) for _ in range(600 if number % 3 else 40)])
    taken(census, 0)
    for _ in range(7):  # others of them are gone to
        pool.append(Pooled())
        pool[-1].queries.extend([bytes(10_000) for _ in range(40)])
        holders = taken(census, 30 * MIB * len(pool))["holders"]
        assert not [one["name"] for one in holders if one["name"].endswith(".queries")]


def test_a_dict_of_lists_of_any_length_grows_by_itself(census):
    index, choose = {}, random.Random(3)

    def read(number):
        for text in range(number):
            index[len(index)] = [bytes(1000) + bytes([text % 256]) for _ in range(choose.randrange(50, 150))]

    read(200)
    taken(census, 20 * MIB)
    for step in range(1, 6):
        read(200)
        assert holder(taken(census, 20 * MIB * (step + 1)), "index")["nested"] is False


@pytest.mark.parametrize("until", [0.8, 0.55, 0.98])
def test_a_list_that_is_filled_in_order_weighs_what_was_put_there(census, until):
    rows = [None] * 1000

    def fill(begin, end):
        for place in range(begin, end):
            rows[place] = bytes(100_000)

    fill(0, 100)
    taken(census, 0)
    fill(100, int(until * 1000))
    found = holder(taken(census, 100 * MIB), "rows")
    assert abs(found["more_bytes"] - (until * 1000 - 100) * 100_000) < 0.1 * until * 1000 * 100_000


def test_gradients_are_weighed_with_their_parameters(census):
    torch = pytest.importorskip("torch")
    models = {}

    def train(numbers):
        for number in numbers:
            model = models[number] = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.Linear(256, 256))
            model(torch.zeros(1, 256)).sum().backward()

    train(range(10))
    taken(census, 0)
    train(range(10, 50))
    found = holder(taken(census, 44 * MIB), "models")
    assert abs(found["more_bytes"] - 40 * 4 * 256 * 1024) < 4 * MIB


def test_views_that_elements_keep_are_told_as_views(census, monkeypatch):
    torch = pytest.importorskip("torch")

    def fill(sentences, part):
        for start in range(0, int(part * len(sentences)), 16):
            batch = torch.zeros(16, 5, 200)
            for row, sentence in enumerate(sentences[start : start + 16]):
                for column, token in enumerate(sentence.tokens):
                    token[0].setdefault("embedding", batch[row, column, :4])

    (found,) = filled(census, monkeypatch, fill)
    assert found["views"] == 1.0 and found["own_bytes"] * 10 < found["bytes"] <= 100 * MIB


def test_what_all_elements_lead_to_is_not_each_ones(census, monkeypatch):
    def fill(sentences, part):
        for _ in range(int(part * 1000)):
            sentences[0].shared[:] = [Node(list(sentences[0].shared), bytes(1 << 16))]

    assert not filled(census, monkeypatch, fill)


def test_what_grows_in_a_containers_own_elements_is_not_told_as_deep(census):
    kept = [bytes(MIB)] * 8
    taken(census, 0)
    kept.extend([bytes(MIB) for _ in range(16)])
    assert not any([one.get("deep") for one in taken(census, 16 * MIB)["holders"]])


def test_below_counts_each_object_once_and_for_the_nearest_root(census):
    native = sys.modules["_ullage_common"].native
    shared = [bytes(1000) for _ in range(100)]
    first, second = {"own": [bytes(1000)] * 3, "shared": shared}, [shared, [bytes(2000)]]
    sizes = (dict, dict.__sizeof__, list, list.__sizeof__), (bytes, bytes.__sizeof__)
    every, sums, found, owners = native.below(
        [first, first["own"], second], [-1, 0, -1], (), {}, (), (), *sizes, 1, 1000, 10**9, 0
    )
    sums = {sums[at]: tuple(sums[at + 1 : at + 3]) for at in range(0, len(sums), 3)}
    # The dict, two lists, 100 and one; its own list has two; the other list, one in it, and its bytes. Keys of a dict
    # that are interned are everybody's.
    assert every and sums[1][1] == 2 and sums[2][1] == 3
    assert sums[0][1] in (106, 104) and 100_000 < sums[0][0] < 110_000
    some = native.below([shared], [-1], (), {}, (), (bytes,), *sizes, 1, 1000, 10**9, 0)
    assert [len(one) for one in some[1:]] == [3, 100, 100] and set(some[3]) == {0}
    assert native.below([shared], [-1], (), {}, (), (), *sizes, 1, 50, 10**9, 0)[0] is False
    assert native.below([shared], [-1], (), {}, (list,), (), *sizes, 1, 50, 10**9, 0)[1] == []
    assert native.below([[shared]], [-1], (shared,), {}, (), (), *sizes, 1, 50, 10**9, 0)[1][2] == 1
    late = native.below([second, shared], [-1, -1], (), {}, (), (), *sizes, 1, 1000, 10**9, 1)[1]
    assert late[0] == 0 and late[2] == 104 and len(late) == 3  # the list itself, all below it, and nothing is left
    late = native.below([second[1], shared], [-1, -1], (), {}, (), (), *sizes, 1, 1000, 10**9, 1)[1]
    assert {late[at]: late[at + 2] for at in (0, 3)} == {0: 2, 1: 101}


def test_below_goes_into_no_module(census):
    native, module = sys.modules["_ullage_common"].native, types.ModuleType("odd")
    module.held = [bytes(1000)]
    function = eval("lambda: None", module.__dict__)
    sizes = (dict, dict.__sizeof__, list, list.__sizeof__), (bytes, bytes.__sizeof__)
    within = [
        native.below([[function]], [-1], (), modules, (), (), *sizes, 1, 100_000, 10**9, 0)[1][2]
        for modules in ({}, {"odd": module})
    ]
    assert within[0] > within[1]


def test_exceptions_keep_what_their_frames_held(census):
    torch = pytest.importorskip("torch")
    failed = []

    def step():
        image = torch.ones(1024, 256)
        raise ValueError(image.shape)

    def steps(number):
        for _ in range(number):
            try:
                step()
            except ValueError as error:
                failed.append(error)

    steps(10)
    taken(census, 10 * MIB)
    steps(20)
    found = holder(taken(census, 30 * MIB), "failed")
    assert found["errors"] == 1.0 and found["more_bytes"] >= 19 * MIB


def test_an_exception_that_is_raised_again_grows_by_its_tracebacks(census):
    numpy = pytest.importorskip("numpy")
    cached = {"address": ValueError("no address")}

    def poll():
        canvas = numpy.ones((512, 256))
        assert canvas.size
        raise cached["address"]

    def polls(number):
        for _ in range(number):
            try:
                poll()
            except ValueError:
                pass

    polls(10)
    taken(census, 10 * MIB)
    polls(20)
    message = taken(census, 30 * MIB)
    found = holder(message, "cached['address']")
    assert (found["before"], found["length"], found["errors"]) == (20, 60, 1.0)
    assert abs(found["more_bytes"] - 20 * MIB) < 2 * MIB and found["type"] == "ValueError"


class Description:
    def __init__(self, error):
        self.error = error


def check(previous, value):
    try:
        with_state(value)
    except OSError as error:
        return Description(error) if previous is not None else None


def with_state(value):
    state, text = bytearray(value), bytes(value)
    raise OSError(len(state) + len(text))


def test_a_chain_of_exceptions_is_told_by_its_tracebacks(census):
    """Each one's frame refers to the one before: no container holds them, and one name leads to the last."""
    last = Description(None)
    for _ in range(10):
        last = check(last, MIB // 2)
    taken(census, 10 * MIB)
    for _ in range(30):
        last = check(last, MIB // 2)
    (found,) = [one for one in taken(census, 40 * MIB)["holders"] if one["type"] == "tracebacks"]
    assert found["length"] - found["before"] == 2 * 30 and found["errors"] == 1.0
    assert abs(found["more_bytes"] - 30 * MIB) < 8 * MIB, found  # some stand for all, and other tests have left some
    assert found["place"].startswith("with_state(), test_agent_census.py:")
    while last.error is not None:  # a chain so long is freed link by link
        last, error = error_before(last), last.error
        error.__traceback__ = None


def error_before(description):
    return description.error.__traceback__.tb_frame.f_locals["previous"]


def test_what_a_cycle_stores_is_called_so(census):
    batches = itertools.cycle(bytes(MIB) for _ in range(1000))
    for _ in range(10):
        next(batches)
    taken(census, 10 * MIB)
    for _ in range(20):
        next(batches)
    found = holder(taken(census, 30 * MIB), "batches")
    assert (found["type"], found["before"], found["length"]) == ("itertools.cycle", 10, 30)


def test_arrays_over_a_buffer_weigh_what_it_holds(census):
    numpy = pytest.importorskip("numpy")
    volume = collections.OrderedDict()

    def read(first, last):
        for number in range(first, last):
            volume[number] = ("raw", numpy.frombuffer(bytes(MIB), numpy.float32).reshape(512, 512))

    read(0, 10)
    taken(census, 10 * MIB)
    read(10, 30)
    found = holder(taken(census, 30 * MIB), "volume")
    assert abs(found["more_bytes"] - 20 * MIB) < MIB


def test_hooks_of_a_module_are_counted(census):
    torch = pytest.importorskip("torch")
    net = torch.nn.Linear(4, 4)
    for _ in range(10):
        net.register_forward_hook(lambda *_: None)
    taken(census, MIB)
    for _ in range(30):
        net.register_forward_hook(lambda *_: None)
    found = holder(taken(census, 2 * MIB), "net._forward_hooks")
    assert (found["before"], found["length"]) == (10, 40)


def test_a_container_that_no_walk_comes_to_is_found_from_below(census):
    module = types.ModuleType("a_library")
    module.__file__ = "/usr/lib/site-packages/a_library.py"
    module.registry = {"found": [[bytes(MIB)] for _ in range(40)]}
    sys.modules["a_library"] = module
    try:
        taken(census, 40 * MIB)
        module.registry["found"] += [[bytes(MIB)] for _ in range(30)]
        message = taken(census, 70 * MIB)
        assert holder(message, "a_library.registry['found']")["length"] == 70
        assert message["tensors"] is not None
    finally:
        del sys.modules["a_library"]


def test_no_code_of_the_program_runs_and_nothing_is_kept(census):
    ran = []

    class Spy:
        def __getattribute__(self, name):
            ran.append(name)
            return object.__getattribute__(self, name)

        def __len__(self):
            ran.append("len")
            return 3

        def __eq__(self, other):
            ran.append("eq")
            return False

        __hash__ = None

        def __repr__(self):
            ran.append("repr")
            return "spy"

        def __del__(self):
            pass

    class Odd(list):
        def __len__(self):
            ran.append("len of a list")
            return 0

        def __iter__(self):
            ran.append("iter")
            return iter(())

    spies = [Spy() for _ in range(10)]
    spies[0].__dict__["inside"] = spies[1]
    odd = Odd([bytes(MIB)] * 20)
    named = {"spy": spies[2], "odd": odd}
    mark = weakref.ref(odd)
    ran.clear()
    taken(census, MIB)
    spies += [Spy() for _ in range(3000)]
    taken(census, 20 * MIB)
    assert ran == []
    del odd, named
    assert mark() is None


def test_locals_of_a_running_function_do_not_live_on(census):
    class Batch:
        pass

    batch = Batch()
    mark = weakref.ref(batch)
    taken(census, MIB)
    batch = None
    assert mark() is None and batch is None
    own = locals()
    taken(census, 20 * MIB)
    assert own["mark"] is mark


def test_it_is_due_when_more_came_and_ever_more_seldom(census):
    assert census.due(32 * MIB, time.monotonic())
    taken(census, 32 * MIB)
    assert not census.due(64 * MIB, time.monotonic())
    later = time.monotonic() + sys.modules["_ullage_census"].APART_S
    assert census.due(64 * MIB, later) and not census.due(40 * MIB, later)
    census._began -= 1000
    taken(census, 64 * MIB)
    later = time.monotonic() + 400
    assert not census.due(500 * MIB, later) and census.due(500 * MIB, later + 200)
    # What is large at first and is let go of hides no growth that comes later.
    assert not census.due(10 * MIB, later + 200) and census.due(30 * MIB, later + 200)
    assert type(census)().due(32 * MIB, time.monotonic())


def test_deques_with_a_greatest_length_say_so(census):
    recent = collections.deque((bytes(MIB) for _ in range(10)), maxlen=30)
    taken(census, 10 * MIB)
    recent.extend(bytes(MIB) for _ in range(20))
    assert holder(taken(census, 30 * MIB), "recent")["bounded"] is True


@pytest.fixture
def collector_off():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def circle():
    ring = [bytes(MIB)]
    ring.append({"back": ring})


def more_garbage(census, make):
    """What came of it by a function; pytest leaves some of its own."""
    before = taken(census, MIB)["garbage"]
    make()
    after = taken(census, 40 * MIB)
    assert after["collects"] is False
    return after["garbage"]["garbage"] - before["garbage"], after["garbage"]["bytes"] - before["bytes"]


def test_garbage_is_counted_where_nobody_collects_it(census, collector_off):
    alive = []

    def make():
        for _ in range(20):
            circle()
            ring = [bytes(MIB)]
            alive.append((ring, [ring]))

    count, size = more_garbage(census, make)
    assert 40 <= count < 60 and abs(size - 20 * MIB) < MIB
    assert len(alive) == 20


def test_garbage_is_found_behind_all_that_the_program_has_loaded(census, collector_off):
    loaded = [[] for _ in range(60_000)]

    def make():
        for _ in range(10_000):
            ring = [bytearray(4000)]
            ring.append([ring])

    count, size = more_garbage(census, make)
    assert 0.7 < size / (10_000 * 4000) < 1.3, (count, size)
    assert len(loaded) == 60_000


def test_it_finds_what_the_collector_finds(census, collector_off, request):
    garbage = agent_parts.load("garbage")
    gc.freeze()  # what torch has is not asked a hundred times
    request.addfinalizer(gc.unfreeze)
    for seed in range(50):
        chance, held = random.Random(seed), None
        gc.collect()
        nodes = [[] for _ in range(60)]
        for number in range(60):
            nodes[number].extend(chance.choice(nodes) for _ in range(chance.randrange(3)))
        held = chance.sample(nodes, chance.randrange(10))
        del nodes
        found = len(garbage._circles(gc.get_objects(generation=0)))
        assert found == gc.collect(), (seed, len(held))


def test_what_a_local_of_a_running_function_refers_to_is_no_garbage(census, collector_off):
    ring = [bytes(20 * MIB)]
    ring.append(ring)
    assert more_garbage(census, lambda: None)[1] < MIB
    assert len(ring) == 2


def test_tensors_in_a_circle_are_weighed(census, collector_off):
    torch = pytest.importorskip("torch")
    gc.collect()  # what came with torch, where this is the first that needs it

    def make():
        for _ in range(10):
            ring = [torch.zeros(MIB // 4)]
            ring.append(ring)

    assert abs(more_garbage(census, make)[1] - 10 * MIB) < MIB


def test_few_objects_with_much_memory_wait_for_a_collector_that_is_on(census):
    threshold = gc.get_threshold()
    gc.collect()
    gc.set_threshold(5000, *threshold[1:])
    try:
        before = taken(census, MIB)["garbage"]
        for _ in range(10):
            buffer = (ctypes.c_char * MIB)()
            buffer.refers_to_itself = buffer
        del buffer
        after = taken(census, 40 * MIB)
    finally:
        gc.set_threshold(*threshold)
    assert after["collects"] is True
    assert abs(after["garbage"]["bytes"] - before["bytes"] - 10 * MIB) < MIB


class Trainer:
    """Each in a circle with what it made, and with its cases."""

    def __init__(self, cases):
        self.cases, self.loader = cases, types.SimpleNamespace(trainer=self, plan=[])
        self.scheduler = {"trainer": self, "loader": self.loader}


def waits(census, make, number=10):
    """What is told of that many that became garbage after the collector had passed them on to its oldest generation."""
    kept = [Trainer(make(number)) for number in range(number)]
    gc.collect(0)
    gc.collect(1)
    before = taken(census, MIB)["garbage"]["bytes"]
    kept.clear()
    after = taken(census, 40 * MIB)["garbage"]
    return after["bytes"] - before, after


@pytest.mark.parametrize("kind", ["bytes", "array", "tensor", "list"])
def test_what_became_garbage_after_it_was_passed_on_is_counted(census, collector_off, kind):
    numpy, torch = pytest.importorskip("numpy"), pytest.importorskip("torch")
    make = {
        "bytes": lambda number: [bytes(MIB) + bytes([number])],
        "array": lambda number: [numpy.ones(MIB // 8)],
        "tensor": lambda number: {"image": torch.zeros(MIB // 4)},
        "list": lambda number: [[None] * (MIB // 8)],
    }[kind]
    gc.collect()
    size, told = waits(census, make)
    assert size == pytest.approx(10 * MIB, rel=0.1) and told["old"], told


def test_half_of_a_circle_may_be_young(census, collector_off):
    gc.collect()
    kept = [[] for _ in range(10)]
    gc.collect(0)
    gc.collect(1)
    before = taken(census, MIB)["garbage"]["bytes"]
    for one in kept:
        one.append([one, bytes(MIB) + bytes([len(kept)])])
    one = None
    kept.clear()
    assert taken(census, 40 * MIB)["garbage"]["bytes"] - before == pytest.approx(10 * MIB, rel=0.1)


def test_what_lives_is_no_garbage_however_it_is_held(census, collector_off):
    gc.collect()
    local, held = threading.local(), contextvars.ContextVar("held")

    def ring():
        found = Trainer([bytes(4 * MIB)])
        return found

    def suspended():
        mine = ring()
        yield
        del mine

    @functools.lru_cache(None)
    def cached():
        return ring()

    started, end = threading.Event(), threading.Event()
    before = taken(census, MIB)["garbage"]["bytes"]

    def works():
        mine = ring()
        started.set()
        end.wait()
        del mine

    thread = threading.Thread(target=works)
    thread.start()
    started.wait()
    generator = suspended()
    next(generator)
    local.one = ring()
    held.set(ring())
    cached()
    mine, key = ring(), ring()
    finalizer = weakref.finalize(key, print, ring())
    atexit.register(print, ring())
    try:
        gc.collect(0)
        gc.collect(1)
        assert taken(census, 40 * MIB)["garbage"]["bytes"] - before < MIB
    finally:
        end.set()
        thread.join()
        atexit.unregister(print)
        finalizer.detach()
        del mine, generator


def test_what_something_else_refers_to_as_well_would_stay(census, collector_off):
    numpy = pytest.importorskip("numpy")
    gc.collect()
    shared = [numpy.ones(MIB), bytes(8 * MIB)]
    size, _ = waits(census, lambda number: list(shared))
    assert abs(size) < MIB and len(shared) == 2


@pytest.mark.parametrize(
    "limits", [(1 << 16, 4000, 10**12), (1 << 16, 2, 10**12), (40, 4000, 10**12), (1 << 16, 4000, 1)]
)
def test_it_finds_no_more_than_the_collector_finds(census, collector_off, request, limits):
    unreachable, (far_back, long, ns) = agent_parts.load("garbage").common.native.unreachable, limits
    gc.freeze()  # what torch has is not asked a hundred times
    request.addfinalizer(gc.unfreeze)
    whole = limits == (1 << 16, 4000, 10**12)
    for seed in range(50):
        chance = random.Random(seed)
        gc.collect()
        nodes = [[] for _ in range(60)]
        for number in range(60):
            nodes[number].extend(chance.choice(nodes) for _ in range(chance.randrange(3)))
        gc.collect(seed % 2)
        held = chance.sample(nodes, chance.randrange(10))
        del nodes
        answer = unreachable(gc.get_threshold(), far_back, long, (set,), 4000, ns)
        found = answer and (len(answer[2]), answer[3])
        del answer
        real = gc.collect()
        assert found == (real, real) if whole else found is None or found[1] <= real, (seed, len(held))


def test_what_a_living_tensor_or_array_shares_would_stay(census, collector_off):
    numpy, torch = pytest.importorskip("numpy"), pytest.importorskip("torch")
    gc.collect()
    array, tensor = numpy.ones(4 * MIB), torch.zeros(8 * MIB)
    size, _ = waits(
        census, lambda number: [array[number : number + 1], array[:], tensor[number : number + 1], tensor.detach()]
    )
    assert abs(size) < MIB and len(array) and len(tensor)

    def views(number):
        base, storage = numpy.ones(MIB // 8), torch.zeros(MIB // 4)
        return [base[1:], base.reshape(2, -1), storage, storage.detach()]

    size, _ = waits(census, views)
    assert size == pytest.approx(20 * MIB, rel=0.1)


def test_no_element_of_a_very_long_list_is_asked(census, collector_off, monkeypatch):
    garbage, asked = sys.modules["_ullage_garbage"], [0]

    def referents(*some):
        found = gc.get_referents(*some)
        asked.append(len(found))
        return found

    gc.collect()
    monkeypatch.setattr(garbage, "gc", types.SimpleNamespace(**{**vars(gc), "get_referents": referents}))
    size, _ = waits(census, lambda number: [str(number) for number in range(50_000)], number=1)
    assert max(asked) <= garbage.LONG and size >= 8 * 50_000


def test_of_objects_in_turn_not_every_other_one_is_asked(census, collector_off):
    gc.collect()
    kept = []
    for number in range(6000):
        one = types.SimpleNamespace()
        one.buffer = [one, bytes(4000) + bytes([number % 251])]
        kept.append(one)
    one = None
    gc.collect(0)
    gc.collect(1)
    before = taken(census, MIB)["garbage"]["bytes"]
    kept.clear()
    size = taken(census, 40 * MIB)["garbage"]["bytes"] - before
    assert size == pytest.approx(6000 * 4000, rel=0.2)


def test_no_code_of_the_program_runs_for_it(census, collector_off):
    ran = []

    class Spy:
        def __del__(self):
            ran.append("del")

        def __eq__(self, other):
            ran.append("eq")
            return False

        def __hash__(self):
            ran.append("hash")
            return 7

        def __sizeof__(self):
            ran.append("sizeof")
            return 7

    def make(number):
        spy = Spy()
        spy.itself, spy.weight = spy, bytes(MIB)
        return [spy]

    gc.collect()
    runs = gc.get_stats()
    size, _ = waits(census, make)
    assert ran == [] and size > 9 * MIB
    assert [one["collections"] for one in gc.get_stats()][2] == runs[2]["collections"]
    gc.collect()
    assert ran.count("del") == 10


@pytest.mark.parametrize("many", [False, True])
def test_where_lists_are_very_long_nobody_is_asked_who_refers_to_one(census, monkeypatch, many):
    """One call of the collector's compares each element, and holds the program up for as long."""
    asked, refer = [], gc.get_referrers
    monkeypatch.setattr(gc, "get_referrers", lambda *some: asked.append(some) or refer(*some))
    module = types.ModuleType("a_library")
    module.__file__ = "/usr/lib/site-packages/a_library.py"
    module.registry = {"found": [[bytes(MIB)] for _ in range(40)]}
    kept = [True] * (3_000_000 if many else 3000)
    monkeypatch.setitem(sys.modules, "a_library", module)
    taken(census, 40 * MIB)
    module.registry["found"] += [[bytes(MIB)] for _ in range(30)]
    assert taken(census, 70 * MIB)["holders"] and kept
    assert bool(asked) != many


def test_very_many_frozen_objects_are_not_counted_again(census, monkeypatch):
    many, asked = sys.modules[type(census).__module__].MANY_FROZEN, []
    for number, times in ((7, 1), (many, 2), (many + 1, 2)):
        monkeypatch.setattr(gc, "get_freeze_count", lambda number=number: asked.append(number) or number)
        assert (taken(census, 20 * MIB)["frozen"], len(asked)) == (min(number, many), times)
