"""The moments at which the agent looks at memory in programs of torch, and that torch does not notice."""

import sys

import pytest

from receiver import watched
from test_agent_transparency import same

pytest.importorskip("torch")

COMPUTES = """
import time, torch
torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256))
total, end = 0, time.monotonic() + 5
while time.monotonic() < end:
    total = total + net(torch.randn(512, 256)).mean()
    while total.grad_fn._sequence_nr() > 150 * (5 + time.monotonic() - end):
        pass
"""


def test_a_loop_that_only_computes_is_looked_into(script):
    _, receiver = watched([sys.executable, script(COMPUTES)])
    taken = receiver.of("census")
    assert [census["number"] for census in taken][:2] == [1, 2]
    (graph,) = taken[-1]["graphs"]
    assert graph["name"] == "__main__.total" and graph["more_bytes"] > 0.5 * graph["of_bytes"]


STEPS = """
import time, torch
torch.set_num_threads(1)
weight = torch.nn.Parameter(torch.ones(4))
optimizer = torch.optim.SGD([weight], lr=0.1)
kept, end = [], time.monotonic() + 5
while time.monotonic() < end:
    kept.append(torch.ones(1 << 18))
    weight.grad = torch.ones(4)
    optimizer.step()
    while len(kept) > 40 * (5 + time.monotonic() - end):
        pass
"""


def test_an_optimizers_step_is_a_moment(script):
    _, receiver = watched([sys.executable, script(STEPS)])
    holder = receiver.of("census")[1]["holders"][0]
    assert holder["name"] == "__main__.kept" and holder["line"] == "program.py:8"


WORKER = """
import time, torch
class Samples(torch.utils.data.Dataset):
    def __init__(self):
        self.cache = {}
    def __len__(self):
        return 10_000
    def __getitem__(self, index):
        end = time.monotonic() + 0.02
        while time.monotonic() < end:
            pass
        self.cache[index] = bytearray(1 << 20)
        return index
if __name__ == "__main__":
    torch.set_num_threads(1)
    end = time.monotonic() + 7
    for _ in torch.utils.data.DataLoader(Samples(), num_workers=1, multiprocessing_context="fork"):
        if time.monotonic() > end:
            break
"""


def test_a_loaders_worker_is_looked_into(script):
    _, receiver = watched([sys.executable, script(WORKER)])
    holder = receiver.of("census")[1]["holders"][0]
    assert holder["name"] == "dataset.cache" and holder["owner"] == "__main__.Samples"


UNSEEN = """
import copy, inspect, logging, pickle, torch
logging.disable(logging.WARNING)
net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
print(torch.nn.Module.__call__.__qualname__, net.__call__.__func__ is torch.nn.Module.__call__)
print(inspect.signature(torch.nn.Module.__call__), inspect.isfunction(torch.nn.Module.__call__))
class Own(torch.nn.Module):
    def __call__(self, value):
        return super().__call__(value) + 1
    def forward(self, value):
        return 2 * value
print(Own()(torch.ones(1)), copy.deepcopy(net)(torch.zeros(4)).shape)
print(torch.jit.trace(net, torch.zeros(4)).code, torch.jit.script(net).code)
print(torch.fx.symbolic_trace(net).code, net(torch.zeros(4)).shape)
pickle.loads(pickle.dumps(net))(torch.zeros(4))
explained = torch._dynamo.explain(net)(torch.zeros(4))
print(explained.graph_count, explained.graph_break_count)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
def step():
    optimizer.step()
net(torch.ones(4)).sum().backward()
explained = torch._dynamo.explain(step)()
print(explained.graph_count, explained.graph_break_count, explained.break_reasons)
torch.compile(net, backend="eager", fullgraph=True)(torch.zeros(4))
pickle.loads(pickle.dumps(optimizer))
class Broken(torch.nn.Module):
    def forward(self, value):
        raise ValueError(value)
torch.nn.Sequential(Broken())(1)
"""


def test_torch_and_tracebacks_are_what_they_were(script):
    same([sys.executable, "-W", "ignore", script(UNSEEN)])
