"""Processes: how each of them ended, which of them were found, and that the job's exit status passes through.

On these kernels there is no PIDFD_GET_INFO (6.15), so an ending that was not waited for may be unknown; it
must never be wrong.
"""

import collections
import json
import os

from guest import HAVE_ULLAGE, ULLAGE, exported, job, run, watched
from registry import case


def truth_of(path):
    with open(path) as file:
        return {(t["pid"], t["start"]): t for t in map(json.loads, file)}


def events(record, kind):
    for line in exported(record):
        what = line.get("event", {}).get("what", {})
        if what.get("event") == kind:
            yield what


def identity(value):
    return value["pid"], value["start"]


def endings(mode, artifacts):
    record, path = f"/runs/endings-{mode}", f"/tmp/endings-{mode}"
    ended = watched(job("endings", mode, path), record, timeout=90)
    yield "the job ended with 0", ended.code == 0, ended.err[-400:]
    truth = truth_of(path)
    yield "the truth is complete", len(truth) == (60 if mode == "mixed" else 200), len(truth)
    if not HAVE_ULLAGE:
        return
    said = {identity(e["id"]): e for e in events(record, "process_ended")}
    seen = {identity(e["facts"]["id"]) for e in events(record, "process_seen")}
    tally, wrong = collections.Counter(), []
    for key, told in truth.items():
        event = said.get(key)
        if event is None:
            tally["no event" if key in seen else "alive at no tick"] += 1
        elif "not_seen" in event["ending"]:
            tally["not seen"] += 1
        elif event["ending"] == told["ending"]:
            tally[f"right by {event['source']}"] += 1
        else:
            tally["wrong"] += 1
            wrong.append((told, event))
    artifacts["tally.json"] = json.dumps(tally, indent=1)
    yield "no ending is wrong", tally["wrong"] == 0, f"{dict(tally)} {wrong[:3]}"
    yield "every one that was found has an ending", tally["no event"] == 0, dict(tally)


@case("endings: 200 grandchildren SIGKILLed and reaped at once")
def endings_killed(artifacts):
    yield from endings("killed", artifacts)


@case("endings: 200 grandchildren SIGKILLed, reaped late")
def endings_zombies(artifacts):
    yield from endings("zombies", artifacts)


@case("endings: 200 orphaned grandchildren SIGKILLed")
def endings_orphans(artifacts):
    yield from endings("orphans", artifacts)


@case("endings: exits and signals by turns")
def endings_mixed(artifacts):
    yield from endings("mixed", artifacts)


@case("discovery: every kind of child")
def discovery(artifacts):
    ended = watched(job("family", "/tmp/family"), "/runs/family", timeout=60)
    yield "the job ended with 0", ended.code == 0, ended.err[-600:]
    truth = truth_of("/tmp/family")
    kinds = collections.Counter(t["kind"] for t in truth.values())
    yield "the truth is complete", len(kinds) == 9 and kinds["shell pipeline"] == 2, dict(kinds)
    if not HAVE_ULLAGE:
        return
    artifacts["export.jsonl"] = "\n".join(map(json.dumps, exported("/runs/family")))
    seen = {identity(e["facts"]["id"]) for e in events("/runs/family", "process_seen")}
    for key, told in sorted(truth.items()):
        yield f"found: {told['kind']}", key in seen, key


@case("exit status passes through", needs_ullage=True)
def exit_status(artifacts):
    for arguments, code in (
        (("exit", 0), 0), (("exit", 1), 1), (("exit", 77), 77),
        (("signal", 15), 143), (("signal", 9), 137), (("signal", 11), 139),
    ):  # fmt: skip
        ended = run([ULLAGE, "run", "-q", "--", *job("ends", *arguments)], 30)
        yield f"{' '.join(map(str, arguments))} gives {code}", ended.code == code, f"{ended.code} {ended.err[-200:]}"
    yield "126 for what cannot be run", run([ULLAGE, "run", "--", "/etc/passwd"], 30).code == 126
    yield "127 for what is not there", run([ULLAGE, "run", "--", "no-such-command"], 30).code == 127


@case("ullage as PID 1", needs_ullage=True)
def pid_one(artifacts):
    inside = [
        "unshare",
        "--mount",
        "--pid",
        "--fork",
        "--mount-proc",
        ULLAGE,
        "run",
        "-q",
        "--record",
        "/runs/pid-one",
        "--",
    ]
    ended = run([*inside, *job("leaves_orphans")], 60)
    yield "the job's exit status", ended.code == 77, f"{ended.code} {ended.err[-400:]}"
    facts = json.load(open("/runs/pid-one/run.json"))
    yield "ullage was PID 1", facts["recorder"] and facts["recorder"]["pid"] == 1, facts["recorder"]
    yield "the outcome is recorded", facts["outcome"] and facts["outcome"]["code"] == 77, facts["outcome"]
    said = [e for e in events("/runs/pid-one", "process_ended")]
    wrong = [e for e in said if "signaled" in e["ending"]]
    yield "no orphan is said to have died of a signal", not wrong, wrong[:3]
    left = [p for p in os.listdir("/proc") if p.isdigit() and _state(p) == "Z"]
    yield "no zombie is left", not left, left


def _state(pid):
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0].decode()
    except OSError:
        return ""
