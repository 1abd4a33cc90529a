"""`ullage.Process` against `multiprocessing.Process`, with the real command between."""

import multiprocessing
import os
import signal
import subprocess
import sys

import pytest

import ullage

SOURCE = os.path.dirname(os.path.dirname(ullage.__file__))


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ULLAGE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([SOURCE, os.path.dirname(__file__)]))
    return tmp_path / "home"


def put(queue, *values, **named):
    queue.put((values, named, multiprocessing.get_start_method(), multiprocessing.current_process().name))


def leave(how):
    if how == "raise":
        raise ValueError("on purpose")
    if how == "exit":
        sys.exit(77)
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "terminated":
        signal.pause()
    if how == "fat":
        kept = [bytearray(os.urandom(1 << 20)) for _ in range(400)]
        signal.pause()
        print(len(kept))


def finish(process, seconds=60):
    process.join(seconds)
    assert not process.is_alive()
    return process.exitcode


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_the_target_runs_with_its_arguments_and_the_start_method(method):
    queue = multiprocessing.get_context("spawn").Queue()
    process = ullage.Process(target=put, args=(queue, 1), kwargs={"a": "b"}, name="T", start_method=method)
    assert process.verdict is None and process.exitcode is None
    process.start()
    assert queue.get(timeout=600) == ((1,), {"a": "b"}, method, "T")
    assert finish(process) == 0
    assert process.verdict["healthy"] is True and process.verdict["schema"] == 1
    assert process.verdict["outcome"]["kind"] == "exit"


@pytest.mark.parametrize("how", ["raise", "exit", "killed"])
def test_exit_codes_are_those_of_multiprocessing(how, capfd):
    codes, errors = [], []
    for kind in (multiprocessing.get_context("spawn").Process, ullage.Process):
        process = kind(target=leave, args=(how,), name="P")
        process.start()
        codes.append(finish(process))
        errors.append(capfd.readouterr().err)
    assert codes[0] == codes[1]
    assert errors[0] == errors[1]


@pytest.mark.parametrize("way", ["terminate", "kill"])
def test_terminate_and_kill_reach_the_process_itself(way):
    process = ullage.Process(target=leave, args=("terminated",), daemon=True)
    process.start()
    assert process.is_alive() and process in multiprocessing.active_children()
    getattr(process, way)()
    sent = signal.SIGTERM if way == "terminate" else signal.SIGKILL
    assert finish(process) == -sent
    assert process.verdict["outcome"]["signal"] == sent
    assert multiprocessing.connection.wait([process.sentinel], 0) == [process.sentinel]


def test_a_budget_ends_it():
    process = ullage.Process(target=leave, args=("fat",), memory_max="200MiB")
    process.start()
    assert finish(process) == 53
    assert process.verdict["outcome"]["kind"] == "budget"


def test_the_recording_goes_where_it_was_asked_to(tmp_path):
    process = ullage.Process(target=leave, args=("exit",), record=tmp_path / "recording")
    process.start()
    assert finish(process) == 77
    assert (tmp_path / "recording" / "run.json").exists()


def test_fork_is_refused_with_what_to_do():
    with pytest.raises(ullage.Error, match="start_method='spawn'"):
        ullage.Process(target=leave, start_method="fork")
    with pytest.raises(ullage.Error, match="must be one of spawn, forkserver"):
        ullage.Process(target=leave, start_method="thread")


def test_what_cannot_be_pickled_raises_as_in_multiprocessing():
    with pytest.raises(Exception, match="pickle"):
        ullage.Process(target=lambda: None).start()
    with pytest.raises(AssertionError, match="can only join a started process"):
        ullage.Process(target=leave).join()


@pytest.mark.parametrize("off", ["disabled", "missing", "failing"])
def test_without_ullage_it_runs_unwatched(off, monkeypatch, tmp_path):
    if off == "disabled":
        monkeypatch.setenv("ULLAGE_DISABLE", "1")
    else:
        binary = tmp_path / "ullage"
        binary.write_text("#!/bin/sh\necho failing >&2\nexit 125\n")
        binary.chmod(0o755)

        def find():
            if off == "missing":
                raise ullage.errors.NotInstalled("the command `ullage` is not there")
            return str(binary)

        monkeypatch.setattr("ullage.process.find_binary", find)
    process = ullage.Process(target=leave, args=("exit",))
    if off == "disabled":
        process.start()
    else:
        with pytest.warns(UserWarning, match="runs unwatched"):
            process.start()
    assert finish(process) == 77
    assert process.verdict is None


def wait_for_word_and_touch(fifo, path):
    with open(fifo) as words:
        words.read()
    with open(path, "w"):
        pass


def test_a_killed_ullage_leaves_the_process_running(tmp_path):
    fifo, done = tmp_path / "fifo", tmp_path / "done"
    os.mkfifo(fifo)
    process = ullage.Process(target=wait_for_word_and_touch, args=(str(fifo), str(done)))
    process.start()
    os.kill(process._popen._watcher, signal.SIGKILL)
    os.waitid(os.P_PID, process._popen._watcher, os.WEXITED | os.WNOWAIT)
    assert process.is_alive()
    fifo.write_text("go")
    assert finish(process) == 255
    assert done.exists() and process.verdict is None


def test_a_target_of_the_main_program_and_no_descriptor_left(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import os, ullage\n"
        "def work(n):\n    print('worked', n, __name__)\n"
        "if __name__ == '__main__':\n"
        "    for n in range(2):\n"
        "        p = ullage.Process(target=work, args=(n,)); p.start(); p.join(); p.close()\n"
        "        print(len(os.listdir('/proc/self/fd')))\n"
    )
    said = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=True)
    lines = said.stdout.split("\n")
    assert [line for line in lines if line.startswith("worked")] == ["worked 0 __mp_main__", "worked 1 __mp_main__"]
    counts = [line for line in lines if line.isdigit()]
    assert counts[0] == counts[1] and said.stderr == ""


def _sum_all(tensors, answers):
    import os

    with open("/proc/self/maps") as file:
        segments = file.read().count("/torch_")
    with open(answers, "w") as file:
        file.write(f"{sum(float(t.sum()) for t in tensors)} {segments} {len(os.listdir('/proc/self/fd'))}")


def test_arguments_with_many_tensors_need_no_segment_each(tmp_path):
    torch = pytest.importorskip("torch")
    tensors = [torch.full((20,), float(n)) for n in range(3000)]
    process = ullage.Process(target=_sum_all, args=(tensors, str(tmp_path / "answer")))
    process.start()
    process.join(120)
    total, segments, descriptors = (tmp_path / "answer").read_text().split()
    assert process.exitcode == 0 and float(total) == sum(20.0 * n for n in range(3000))
    assert int(segments) == 0 and int(descriptors) < 30
