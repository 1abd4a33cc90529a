"""tests/side_by_side.py finds what a way of running a job changes: the ways here are scripts in ullage's place."""

import pathlib
import signal
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import side_by_side as side  # noqa: E402

PARTS = "import os, sys\nfor name in sys.argv[1:]:\n    if name == os.environ.get('DIES_AT'): os.abort()\n    print(name, 1, sep='\\t', flush=True)"


@pytest.fixture
def ullage(tmp_path, monkeypatch):
    """Makes a script that does something before it runs the command after `--`."""
    monkeypatch.setattr(side, "SLOTS", side.threading.Semaphore(4))
    monkeypatch.setattr(side, "SETTLE_S", 0)

    def make(does):
        script = tmp_path / "in-its-place"
        script.write_text(f'#!/bin/bash\nuntil [ "$1" = -- ]; do shift; done; shift\n{does}\nexec "$@"\n')
        script.chmod(0o755)
        return str(script)

    return make


def differences(job, script, tmp_path, allowed=()):
    found, _ = side.compare(job, script, str(tmp_path / "job"), set(allowed))
    return {(aspect, way) for aspect, way, _, _ in found}


def test_a_way_that_changes_nothing_does_not_differ(ullage, tmp_path):
    job = side.Job("one", ["bash", "-c", "echo $$ $RANDOM | wc -w; touch made; exit 3"], [])
    assert differences(job, ullage(""), tmp_path) == set()


@pytest.mark.parametrize(
    ("does", "aspect"),
    [
        ("echo more", "out"),
        ("echo more >&2", "err"),
        ("touch more", "files left in its folder"),
        ("touch $TMPDIR/more", side.TEMPORARY),
        ("touch $HOME/more", "files left in HOME"),
        ("sleep 3000 &", "processes left"),
        ("exit 4", "status"),
    ],
)
def test_what_a_way_changes_is_a_difference(does, aspect, ullage, tmp_path):
    job = side.Job("one", ["bash", "-c", "echo words"], [])
    assert {(aspect, way) for way in ("run", "fix", "zygote")} <= differences(job, ullage(does), tmp_path)


def test_a_job_that_differs_from_itself_is_at_fault(ullage, tmp_path):
    job = side.Job("one", ["bash", "-c", "cat /proc/sys/kernel/random/uuid"], [])
    assert differences(job, ullage(""), tmp_path) == {("out", "plain, once more")}


def test_a_job_that_was_odd_once_blames_no_way(ullage, tmp_path):
    once = f"mkdir {tmp_path}/met 2>/dev/null && echo odd || echo fine"
    assert differences(side.Job("one", ["bash", "-c", once], []), ullage(""), tmp_path) == set()


def test_parts_after_one_that_kills_the_process_are_run(ullage, tmp_path):
    job = side.Job("all", [sys.executable, "-c", PARTS], ["a", "b", "c"])
    found = differences(job, ullage("export DIES_AT=b; ulimit -c 0"), tmp_path)
    assert found == {("b", way) for way in ("run", "fix", "zygote")}


def test_a_silent_part_is_killed_and_those_after_it_run(ullage, tmp_path):
    job = side.Job(
        "all", [sys.executable, "-c", PARTS.replace("os.abort()", "import signal; signal.pause()")], ["a", "b"]
    )
    took = side.observe(job, "plain", "", str(tmp_path / "plain")).took
    silent_s = max(0.5, side.TIMES_AS_LONG * max(took.values()))
    seen = side.observe(job, "run", ullage("export DIES_AT=a"), str(tmp_path / "job"), silent_s)
    assert (seen.aspects["a"], seen.aspects["b"]) == ("nothing, hangs", "1")


def test_a_signal_is_sent_to_a_job_that_is_ready(ullage, tmp_path):
    code = "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(9))\nprint('ready', flush=True)\nsignal.pause()"
    job = side.Job("one", [sys.executable, "-c", code], [], send=signal.SIGTERM.name)
    assert side.observe(job, "plain", "", str(tmp_path / "job")).aspects["status"] == 9


def test_the_page_names_jobs_and_ways():
    allowed = side.named_differences()
    assert ("parent-of-an-orphan", "run") in allowed
    assert {way for _, way in allowed} <= set(side.WAYS) - {"plain"}
