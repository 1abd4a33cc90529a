"""What the agent says of things that torch keeps, and that nothing of it stands in what the job prints."""

import sys

import pytest

from receiver import HEARD, place_of, several, watched
from test_agent_transparency import same

pytest.importorskip("torch")

MIB = 1 << 20

LATE = """
import sys, time, torch
from torch.utils.data import DataLoader, Dataset
class Samples(Dataset):
    def __len__(self):
        return 24
    def __getitem__(self, index):
        while index == 4 and sys.argv[1] == "late" and not heard():
            time.sleep(0.01)
        if index == 6 and sys.argv[1] == "fails":
            raise ValueError("bad sample")
        return torch.ones(MIB, dtype=torch.uint8)
MIB = 1 << 20
if __name__ == "__main__":
    loader = DataLoader(Samples(), batch_size=None, num_workers=2, prefetch_factor=4, multiprocessing_context="fork")
    print(sum(int(batch[0]) for batch in loader))
"""


def run(script, program, *arguments, until=()):
    return watched([sys.executable, script(HEARD + program), *arguments], text=True, until=until)


def test_batches_behind_a_late_one_are_counted(script):
    done, receiver = run(script, LATE, "late", until=several(1, "waiting", batches=4))
    assert done.stdout == "24\n", done.stderr
    told = receiver.of("waiting")
    # Half of them are the late worker's own.
    most = max(told, key=lambda one: one["batches"])
    assert most["batches"] == 4 and most["outstanding"] == 8, told
    assert most["waited_s"] > 0 and most["worker"] in (0, 1)
    assert MIB <= sum(most["batch"].values()) < 1.1 * MIB


ORDERLY = """
import torch
from torch.utils.data import DataLoader, Dataset
class Samples(Dataset):
    def __len__(self):
        return 24
    def __getitem__(self, index):
        # No sample is made before the one in front of it has arrived.
        while index and not os.path.exists(f"{os.environ['ULLAGE_TEST_HEARD']}-{index - 1}"):
            os.sched_yield()
        return torch.ones(1 << 20, dtype=torch.uint8)
if __name__ == "__main__":
    loader = DataLoader(Samples(), batch_size=None, num_workers=2, prefetch_factor=4, multiprocessing_context="fork")
    arrived = 0
    for batch in loader:
        open(f"{os.environ['ULLAGE_TEST_HEARD']}-{arrived}", "w").close()
        arrived += int(batch[0])
    print(arrived)
"""


def test_batches_that_come_in_their_order_wait_for_none(script):
    done, receiver = run(script, ORDERLY)
    assert done.stdout == "24\n", done.stderr
    assert receiver.of("waiting") == []


def test_no_frame_of_ours_is_in_a_loaders_traceback(script):
    done, _ = run(script, LATE, "fails")
    assert "ValueError: bad sample" in done.stderr
    assert "/ullage_" not in done.stderr.partition("Traceback")[2], done.stderr


MANY_WORKERS = """
import torch, warnings
from torch.utils.data import DataLoader
warnings.simplefilter("always")
loader = DataLoader([torch.ones(1)], num_workers=500)
try:
    kind = torch.utils.data.dataloader._MultiProcessingDataLoaderIter
    kind.__init__, kind.__del__ = lambda *arguments: 1 / 0, lambda self: None
    iter(loader)
except ZeroDivisionError:
    print("made no workers")
"""


def test_a_warning_blames_the_line_of_torch(script):
    _, receiver = same([sys.executable, script(MANY_WORKERS)])
    assert receiver.of("loader")[0]["workers"] == 500


CONTEXTS = """
import gc, sys, time, torch
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = 2 * x
        if sys.argv[1] in ("attribute", "old"):
            ctx.y = y
        elif sys.argv[1] == "tuple":
            ctx.cache = x, y
        elif sys.argv[1] == "view":
            ctx.parts = x, y[:100], y[100:].view(-1, 1)
        elif sys.argv[1] == "input":
            ctx.x = x[:100], x
        else:
            ctx.save_for_backward(y)
        return y
    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient
weight, kept = torch.ones(1 << 17, requires_grad=True), []
if sys.argv[1] == "old":  # they came through collections, and nobody will look at them again
    for _ in range(50):
        kept.append(Double.apply(weight))
    gc.collect()
    kept.clear()
    gc.disable()  # the next ones stay young
    for _ in range(10):
        Double.apply(weight)
while not heard():
    if sys.argv[1] == "old":  # no more come
        kept.append(bytes(1 << 20))
        time.sleep(0.1)
        continue
    y = Double.apply(weight).sum()
    y.backward()
    kept.append(bytes(MIB := 1 << 20))
    if sys.argv[1] not in ("attribute", "tuple", "view", "old"):
        kept.append(y)  # the graph lives, and holds no circle
    time.sleep(0.1)
"""


@pytest.mark.parametrize("how", ["attribute", "tuple", "view"])
def test_contexts_that_hold_what_they_made_are_counted(script, how):
    held = several(1, "kept", what="autograd-circles", name="Double")
    done, receiver = run(script, CONTEXTS, how, until=held)
    assert done.returncode == 0, done.stderr
    told = [message for message in receiver.of("kept") if message["what"] == "autograd-circles"]
    assert told[-1]["name"] == "Double" and told[-1]["count"] >= 8
    assert told[-1]["bytes"] == told[-1]["count"] // (2 if how == "view" else 1) * (4 << 17)


def test_those_that_came_through_collections_are_counted_too(script):
    held = several(1, "kept", what="autograd-circles", count=lambda count: count > 50)
    done, _ = run(script, CONTEXTS, "old", until=held)
    assert done.returncode == 0, done.stderr


MANY_TENSORS = """
kept = [torch.ones(1) for _ in range(80_000)]
gc.collect()
while not heard():
    if len(kept) % 40 == 0:
        gc.collect()
"""


def test_a_circle_that_is_met_by_chance_stands_for_no_others(script):
    # Of 80,000 tensors every 21st is looked at; of 40 circles each time one or two.
    held = several(8, "memory")
    done, receiver = run(script, CONTEXTS.replace("while not heard():", MANY_TENSORS), "attribute", until=held)
    assert done.returncode == 0, done.stderr
    told = [message["count"] for message in receiver.of("kept") if message["what"] == "autograd-circles"]
    assert max(told, default=0) <= 41, told


@pytest.mark.parametrize("how", ["input", "saved"])
def test_contexts_that_hold_something_else_are_not(script, how):
    # They are counted at each look at memory, and told at the first where there are any.
    done, receiver = run(script, CONTEXTS, how, until=several(4, "memory"))
    assert done.returncode == 0, done.stderr
    assert [message for message in receiver.of("kept") if message["what"] == "autograd-circles"] == []


PROFILED = """
import sys, time, torch
from torch.profiler import profile, schedule
kept, steps = [], schedule(wait=1, warmup=1, active=1, repeat=1) if sys.argv[1] == "schedule" else None
with profile(activities=[torch.profiler.ProfilerActivity.CPU], schedule=steps) as profiler:
    while not heard():
        torch.ones(8).sum()
        kept.append(bytes(1 << 20))
        profiler.step()
        time.sleep(0.05)
"""


def test_a_profiler_is_told_for_as_long_as_it_records(script):
    recorded = several(1, "kept", what="profiler", count=lambda seconds: seconds >= 1)
    done, receiver = run(script, PROFILED, "whole", until=recorded)
    assert done.returncode == 0, done.stderr
    seconds = [message["count"] for message in receiver.of("kept") if message["what"] == "profiler"]
    assert seconds == sorted(seconds) and seconds[-1] >= 1


def test_a_profiler_with_a_schedule_does_not_record_for_long(script):
    done, receiver = run(script, PROFILED, "schedule", until=several(4, "memory"))
    assert done.returncode == 0, done.stderr
    # That one began is told with 0 s, where a look falls into its one step.
    seconds = [message["count"] for message in receiver.of("kept") if message["what"] == "profiler"]
    assert not any(seconds), seconds


BUFFERS = """
import random, sys, time
from torch.utils.data import DataLoader, IterableDataset, get_worker_info
def shuffled(samples):
    buffer = []
    for sample in samples:
        buffer.append(sample)
        if len(buffer) < 32:
            continue
        place = random.randrange(len(buffer))
        yield buffer[place]
        if random.random() < 0.5:
            buffer[place] = buffer[-1]
            del buffer[-1]
def pick(buffer):
    place = random.randrange(len(buffer))
    buffer[place], buffer[-1] = buffer[-1], buffer[place]
    return buffer.pop()
def called(samples):
    buffer = []
    for sample in samples:
        buffer.extend((sample, next(samples)))
        if len(buffer) >= 32:
            yield pick(buffer)
def enclosed(samples):
    buffer = []
    def pick():
        return buffer.pop(random.randrange(len(buffer)))
    for sample in samples:
        buffer.extend((sample, next(samples)))
        if len(buffer) >= 32:
            yield pick()
def numbered(samples):
    seen = []
    for number, sample in enumerate(samples):
        if random.random() < 0.1:
            continue
        named = {"sample": sample}
        named["id"] = number
        seen.append(named)
        yield sample
def chunks(samples):
    while True:
        rows = [next(samples) for _ in range(100)]
        yield from rows
def augment(sample):
    return sample[1:] if random.random() < 0.5 else bytearray(sample).pop()
def augmented(samples):
    cache = []
    for sample in samples:
        cache.append(sample)
        yield augment(sample)
def cached(samples):
    cache = []
    for sample in samples:
        cache.append(sample)
        yield sample if random.random() < 0.5 else cache[random.randrange(len(cache))]
class Stream(IterableDataset):
    def __iter__(self):
        how = sys.argv[1 + get_worker_info().id]
        return globals()[how](bytes([number % 251]) * 1000 for number in range(1_000_000))
if __name__ == "__main__":
    number, last = 0, 1 << 30
    workers = len(sys.argv) - 1
    for batch in DataLoader(Stream(), batch_size=8, num_workers=workers, multiprocessing_context="fork", collate_fn=len):
        time.sleep(0.01)
        number += 1
        if heard():
            last = min(last, 3 * number)  # the other worker may be later
        if number >= last:
            break
"""


@pytest.mark.parametrize("how", ["shuffled", "called", "enclosed"])
def test_a_buffer_that_fills_is_told_by_what_it_gives_up(script, how):
    told = several(1, "kept", what="shuffle-buffer")
    done, receiver = run(script, BUFFERS, how, until=told)
    assert done.returncode == 0, done.stderr
    assert [message for message in receiver.of("kept") if message["name"].startswith(f"{how}, ")]


@pytest.mark.parametrize("how", ["cached", "augmented", "numbered", "chunks"])
def test_what_only_adds_and_draws_is_no_shuffle_buffer(script, how):
    told = several(1, "kept", what="shuffle-buffer")
    done, receiver = run(script, BUFFERS, "shuffled", how, until=told)
    assert done.returncode == 0, done.stderr
    # Of two workers that draw as fast as each other, one has a buffer.
    kept = [message for message in receiver.of("kept") if message["what"] == "shuffle-buffer"]
    assert {message["name"].partition(",")[0] for message in kept} == {"shuffled"}


ALONE = """
import os, sys, time, torch, torch.distributed as dist
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=0, world_size=1)
for _ in range(12):
    dist.new_group(backend="gloo")
while not heard():
    time.sleep(0.01)
everything = [None]
dist.all_gather_object(everything, ["x" * (1 << 20) for _ in range(4)])
values = [b"y" * (8 << 20)]
dist.broadcast_object_list(values, 0)
print(len(everything[0]), len(values[0]))
class Unwilling:
    def __reduce__(self):
        raise ValueError("not this one")
dist.all_gather_object(everything, Unwilling())
"""


def test_groups_and_objects_of_collectives_are_told(script, tmp_path):
    made = several(1, "kept", what="process-groups", count=lambda count: count >= 10)
    done, receiver = run(script, ALONE, str(tmp_path / "store"), until=made)
    assert done.stdout == f"4 {8 << 20}\n", done.stderr
    groups = [message["count"] for message in receiver.of("kept") if message["what"] == "process-groups"]
    assert groups == sorted(groups) and groups[-1] >= 10
    first, second = receiver.of("collective")
    assert (first["of"], first["ranks"], first["line"]) == (
        "all_gather_object",
        1,
        place_of("dist.all_gather_object(everything, [", HEARD + ALONE),
    )
    assert 4 * MIB <= sum(first["object"].values()) < 5 * MIB
    assert (second["of"], second["line"]) == (
        "broadcast_object_list",
        place_of("dist.broadcast_object_list", HEARD + ALONE),
    )
    assert "ValueError: not this one" in done.stderr and "/ullage_" not in done.stderr, done.stderr
