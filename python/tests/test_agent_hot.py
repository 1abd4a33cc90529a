"""The agent looks at every moment it gets, walks every object and takes every census: the job must not notice.

In use, looks are rare, and what one of them does at a bad moment shows once in a thousand runs. Here the pauses between
them are taken out of a copy of the agent, so that looks fall into the midst of whatever the interpreter does as it
collects: unmarshalling, calls with `**locals()`, sorting, imports.
"""

import shutil
import subprocess

import receiver

EAGER = {
    "memory.py": [
        ("return max(LEAST_APART_S, took / common.BUDGET, (now - _began) / 20)", "return 0.0"),
        (
            "_next_walk = now + max(1.0, (thread_time() - began) / common.BUDGET, (now - _began) / 20)",
            "_next_walk = 0.0",
        ),
        ("MOVED_MUCH = 4 << 20", "MOVED_MUCH = 0"),
        ("WALK_S = 35e-9", "WALK_S = 0"),
        ("if _census.unexplained and", "if False and"),  # while it traces it looks at nothing else
        (
            "if not rises() or grown < max(GROWN, GROWN_SHARE * _growth.first) or tensors.begins():",
            "if tensors.begins():",
        ),
    ],
    "census.py": [
        (
            "return now >= self._next and "
            "(self._taken == 0 or grown - self._last >= max(MORE, MORE_SHARE * self._last))",
            "return True",
        )
    ],
}

BUSY = (
    receiver.HEARD
    + """
import collections, ctypes, dataclasses, enum, gc, json, marshal, sys, time
gc.set_threshold(150)
text = marshal.dumps(tuple(tuple([str(n), (n, [])] for n in range(m, m + 5)) for m in range(400)))
class Kind(enum.Enum):
    ONE, TWO = 1, 2
@dataclasses.dataclass
class Point:
    x: list
    y: dict
def named(first, second=None):
    third = [first, second]
    # That this name has no value yet is a KeyError inside, and while another is handled an object that is collected.
    text = "{first} {second} {third}".format(**locals())
    return text
def several(count):
    for number in range(count):
        yield [number]
kept = {}
number = 0
while not heard():
    number += 1
    # So many objects are made from here to the dict of locals.
    for few in range(1, 7):
        gc.set_threshold(few)
        try:
            kept[-1]
        except KeyError:
            assert named(number, "b") == "%d b [%d, 'b']" % (number, number)
    gc.set_threshold(150)
    assert [one[0] for one in tuple(several(40))] == list(range(40))
    assert len(marshal.loads(text)) == 400
    points = sorted([Point([n % 7], {n: n}) for n in range(60)], key=lambda point: point.x)
    assert [point.x[0] for point in points] == sorted(n % 7 for n in range(60))
    assert Kind(1) is Kind.ONE and json.loads(json.dumps({"a": [1, {"b": [2, 3]}]}))["a"][1]["b"] == [2, 3]
    assert dict(a=1, **vars(Point([1], {}))) == {"a": 1, "x": [1], "y": {}}
    assert collections.namedtuple("T", "a b")(*several(2)) == ([0], [1])
    kept[number] = points[:2]
print("done")
"""
)


def eager(folder, monkeypatch):
    shutil.copytree(receiver.AGENT, folder)
    for name, changes in EAGER.items():
        text = (folder / name).read_text()
        for before, after in changes:
            assert text.count(before) == 1, (name, before)
            text = text.replace(before, after)
        (folder / name).write_text(text)
    monkeypatch.setattr(receiver, "AGENT", folder)


def test_a_job_does_not_notice_looks_at_every_moment(python, script, tmp_path, monkeypatch):
    eager(tmp_path / "agent", monkeypatch)
    with receiver.Receiver(until=receiver.several(20, "census")) as heard:
        done = subprocess.run(
            [python, "-X", "faulthandler", script(BUSY)],
            env=heard.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=receiver.AT_MOST_S,
        )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", ""), done.stderr[-2000:]
    assert len(heard.of("census")) >= 20
    print(len(heard.of("census")), "censuses")
