"""What a Python says it is made of: once a program, from inside a job and to `ullage snapshot`."""

import json
import os
import subprocess

import pytest

from receiver import AGENT, watched

TORCH = "import torch\nimport os\nassert os.environ['OMP_NUM_THREADS'] == '1'"


def has_torch(python):
    return subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0


def test_as_a_program_it_prints_what_it_knows_before_it_imports_anything(python):
    environment = {**os.environ, "MALLOC_ARENA_MAX": "2", "PYTHON_API_TOKEN": "secret", "AWS_SECRET": "x"}
    done = subprocess.run([python, str(AGENT / "facts.py")], capture_output=True, text=True, env=environment)
    first, second = [json.loads(line) for line in done.stdout.splitlines()]
    assert first["env.MALLOC_ARENA_MAX"] == "2" and "secret" not in done.stdout and "AWS" not in done.stdout
    version = subprocess.run(
        [python, "-c", "import platform; print(platform.python_version())"], capture_output=True, text=True
    )
    assert first["python.version"] == version.stdout.strip()
    assert first["python.start_method"] in ("fork", "forkserver") and "loaded.openmp" not in first
    assert first["cores.allowed"] == len(os.sched_getaffinity(0))
    if has_torch(python):
        assert first["torch.version"] == second["torch.version"] and second["torch.threads"] >= 1
        assert "omp" in second["loaded.openmp"]
    else:
        assert second["torch.version"] == {"missing": "not installed"}


@pytest.mark.parametrize("ends", [pytest.param("", marks=pytest.mark.thorough), "\nos.kill(os.getpid(), 9)"])
def test_a_program_with_torch_tells_it_once_and_before_it_can_be_killed(python, script, ends):
    if not has_torch(python):
        pytest.skip("no torch")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done, receiver = watched([python, script(TORCH + ends)], env=environment)
    assert done.returncode == (-9 if ends else 0), done.stderr
    (said,) = receiver.of("inside")
    assert said["facts"]["env.OMP_NUM_THREADS"] == "1" and "omp" in said["facts"]["loaded.openmp"]
    assert said["facts"]["package.torch"].startswith(said["facts"]["torch.version"].partition("+")[0])


def test_forked_and_spawned_children_tell_nothing(python, script):
    program = (
        "import multiprocessing, os\n"
        "def work():\n    pass\n"
        "if __name__ == '__main__':\n"
        "    for method in ('fork', 'spawn'):\n"
        "        child = multiprocessing.get_context(method).Process(target=work)\n"
        "        child.start(); child.join()\n"
        "    if os.fork() == 0:\n        raise SystemExit\n"
        "    os.wait()\n"
    )
    done, receiver = watched([python, script(program)])
    assert done.returncode == 0, done.stderr
    assert len(receiver.of("inside")) == 1


def test_where_nothing_can_be_opened_it_is_left_out(python, script):
    program = "import os\nos.remove(os.path.dirname(os.environ['ULLAGE_AGENT_SOCKET']) + '/ullage_facts.py')\nprint(1)"
    done, receiver = watched([python, script(program)])
    assert (done.stdout, done.stderr) == (b"1\n", b"") and receiver.of("inside") == []
    assert len(receiver.of("bye")) == 1
