"""`ullage.mark` and `ullage mark`: what a job says of itself stands in its recording, its report, its page and its exports."""

import json
import os
import pathlib
import subprocess
import sys

import ullage

COMMAND = pathlib.Path(sys.executable).parent / "ullage"

JOB = """
import multiprocessing, os, subprocess, sys, ullage

def child():
    assert ullage.mark("in a child")

if __name__ == "__main__":
    assert ullage.mark("epoch 1 \\x1b[2J <b>")
    multiprocessing.get_context("fork").Process(target=child).start()
    multiprocessing.active_children()
    subprocess.run([sys.argv[1], "mark", "from", "a shell"], check=True)
    for restart in ["0", "1", "1"]:
        environment = dict(os.environ, TORCHELASTIC_RESTART_COUNT=restart)
        subprocess.run([sys.executable, "-c", "pass"], env=environment, check=True)
"""


def ran(*words, **options):
    return subprocess.run([COMMAND, *words], capture_output=True, text=True, check=True, **options)


def test_marks_and_restarts_are_told_everywhere(tmp_path):
    job = tmp_path / "job.py"
    job.write_text(JOB)
    run, page = str(tmp_path / "run"), tmp_path / "page.html"
    ran("run", "-q", "--record", run, "--html", str(page), "--", sys.executable, str(job), str(COMMAND))
    verdict = json.loads(ran("report", "--json", run).stdout)
    assert {mark["text"] for mark in verdict["marks"]} == {"epoch 1 \x1b[2J <b>", "in a child", "from a shell"}
    assert [attempt["number"] for attempt in verdict["attempts"]] == [1]
    text = ran("report", run).stdout
    assert "from a shell" in text and "(restart 1)" in text and "\x1b" not in text
    assert "from a shell" in page.read_text() and "1 \x1b" not in page.read_text() and "<b>" not in page.read_text()
    items = [json.loads(line) for line in ran("export", run, "--format", "json").stdout.splitlines()]
    kinds = [item["event"]["what"]["event"] for item in items if "event" in item]
    assert kinds.count("mark") == 3 and kinds.count("attempt") == 1


def test_nothing_happens_without_a_run(monkeypatch):
    monkeypatch.delenv("ULLAGE_AGENT_SOCKET", raising=False)
    assert ullage.mark("alone") is False
    monkeypatch.setenv("ULLAGE_AGENT_SOCKET", "/nowhere")
    assert ullage.mark("alone") is False
    done = subprocess.run([COMMAND, "mark", "alone"], capture_output=True, text=True, env=dict(os.environ))
    assert done.returncode == 0 and "nothing was marked" in done.stderr


def test_the_place_in_a_job_of_a_launcher_is_recorded(tmp_path):
    run = tmp_path / "run"
    launcher = {"TORCHELASTIC_RUN_ID": "exp7", "GROUP_RANK": "1", "RANK": "9", "TORCHELASTIC_RESTART_COUNT": "2"}
    slurm = ("SLURM_", "RAY_", "KUBERNETES_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(slurm)} | launcher
    ran("run", "-q", "--record", str(run), "--", "true", env=environment)
    facts = json.loads((run / "run.json").read_text())
    told = {name: facts[name] for name in ("launcher", "job", "node_rank", "rank", "attempt")}
    assert told == {"launcher": "torchrun", "job": "exp7", "node_rank": 1, "rank": 9, "attempt": 2}
