"""The agent and `ullage.Process` on real torch: the crashes that ullage was made for."""

import pathlib
import resource
import sys

import pytest

import ullage
from receiver import watched

pytest.importorskip("torch", reason="torch is not installed in this Python")
CRASH = pathlib.Path(__file__).resolve().parent.parent.parent / "examples" / "crash.py"


def crash(samples, method, strategy, nofile=1024):
    options = ["--samples", str(samples), "--start-method", method, "--strategy", strategy]
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    done, receiver = watched(
        [sys.executable, str(CRASH), *options],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (nofile, hard)),
    )
    assert done.returncode == 1, done.stderr.decode()
    (loader,) = receiver.of("loader")
    (said,) = [message for message in receiver.of("exception") if message["left"] == "process"]
    assert loader["start_method"] == method and loader["start_method_is_default"] is True
    assert (loader["dataset"], loader["dataset_len"]) == ("__main__.Samples", samples)
    assert (said["sharing_strategy"], said["started_by"], said["start_method"]) == (strategy, method, method)
    return said


def test_descriptors_run_out_under_spawn():
    said = crash(300, "spawn", "file_descriptor", nofile=256)
    assert "Too many open files (24)" in said["text"]
    assert said["counts"]["fds"] == said["counts"]["nofile"] == 256
    assert said["counts"]["fds_torch"] > 230 and said["counts"]["mappings_torch"] > 230


def test_forkserver_takes_only_so_many_descriptors():
    said = crash(300, "forkserver", "file_descriptor")
    assert said["text"] == "too many fds"
    assert said["counts"]["fds_torch"] == 300 and said["counts"]["tensors"] >= 300


def max_map_count():
    return int(pathlib.Path("/proc/sys/vm/max_map_count").read_text())


@pytest.mark.skipif(max_map_count() > 70_000, reason=f"vm.max_map_count is {max_map_count()}: 70,000 tensors fit")
@pytest.mark.parametrize("method", [pytest.param("spawn", marks=pytest.mark.thorough), "forkserver"])
def test_mappings_run_out(method):
    said = crash(70_000, method, "file_system")
    counts = said["counts"]
    assert "Cannot allocate memory (12)" in said["text"]
    assert abs(counts["mappings"] - counts["max_map_count"]) <= 2 and counts["mappings_torch"] > 60_000
    assert counts["mappings_torch_bytes"] == counts["mappings_torch"] * 4096
    assert said["stack"][-1].endswith("_share_filename_cpu_")


@pytest.mark.thorough
@pytest.mark.skipif(max_map_count() > 70_000, reason=f"vm.max_map_count is {max_map_count()}: 70,000 tensors fit")
def test_the_crash_under_ullage_process_gives_the_same_finding(tmp_path, monkeypatch):
    monkeypatch.setenv("ULLAGE_HOME", str(tmp_path))
    monkeypatch.syspath_prepend(str(CRASH.parent))
    import crash as example

    process = ullage.Process(target=example.train, args=(70_000, 1, "file_system"))
    process.start()
    process.join()
    assert process.exitcode == 1
    first = process.verdict["findings"][0]
    assert (first["cause"], first["status"]) == ("max-map-count-exhausted", "established")
    assert first["process"]["pid"] == process.pid


WORKER = """
import torch
from torch.utils.data import DataLoader, Dataset
class Broken(Dataset):
    def __len__(self): return 4
    def __getitem__(self, index): raise KeyError("no sample")
for _ in DataLoader(Broken(), num_workers=2, multiprocessing_context="fork"): pass
"""


def test_a_loader_worker_says_what_it_could_not_do(script):
    done, receiver = watched([sys.executable, script(WORKER)])
    assert done.returncode == 1 and b"no sample" in done.stderr
    said = [message for message in receiver.of("exception") if message["left"] == "loader-worker"]
    assert said and all(m["type_name"] == "KeyError" and m["stack"][-1].endswith("__getitem__") for m in said)
    assert {message["worker"] for message in receiver.of("process")} == {0, 1}
    assert receiver.of("loader")[0]["start_method_is_default"] is False


LOADER = """
import sys
import torch
from torch.utils.data import DataLoader, Dataset

class Names(Dataset):
    def __init__(self):
        self.names = [f"{n:050d}" for n in range(200_000)]
        self.tensor = torch.zeros(1 << 20)
    def __len__(self):
        return len(self.names)
    def __getitem__(self, index):
        return len(self.names[index])

if __name__ == "__main__":
    loader = DataLoader(Names(), batch_size=50_000, num_workers=2, multiprocessing_context=sys.argv[1])
    for _ in range(2):
        print(sum(int(batch.sum()) for batch in loader))
"""


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.thorough), "forkserver"])
def test_a_loader_tells_what_its_dataset_weighs_and_workers_that_were_not_forked_their_copy(script, method):
    done, receiver = watched([sys.executable, "-W", "ignore", script(LOADER), method])
    assert done.stdout == b"10000000\n" * 2, done.stderr.decode()
    exact = 200_000 * ((sys.getsizeof(f"{0:050d}") + 15) // 16 * 16)
    loaders = receiver.of("loader")
    assert [loader["start_method"] for loader in loaders] == [method] * 2
    workers = [message for message in receiver.of("process") if message["target"].endswith("_worker_loop")]
    assert sorted(worker["worker"] for worker in workers) == [0, 0, 1, 1]
    copies = [] if method == "fork" else [worker["dataset"] for worker in workers]
    assert all(("dataset" in worker) == ("anonymous" in worker) == (method != "fork") for worker in workers)
    for weight in [loader["weight"] for loader in loaders] + copies:
        assert weight["objects"] == pytest.approx(exact, rel=0.01)
        assert 1_600_000 <= weight["arrays"] < 1_900_000, "the list's own table"
        assert weight["tensors"] == 4 << 20
    assert all(worker["anonymous"] > exact for worker in workers if method != "fork")
