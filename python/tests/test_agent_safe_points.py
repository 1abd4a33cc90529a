"""The moments at which the agent looks at memory in programs of torch, and that torch does not notice."""

import sys

import pytest

from receiver import HEARD, place_of, several, watched
from test_agent_transparency import same

pytest.importorskip("torch")

# A pause in which the agent has no moment.
PAUSE = (
    HEARD
    + """
import select
def pause(seconds):
    select.select([], [], [], seconds)
"""
)

COMPUTES = """
import torch
torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256))
total = 0
while not heard():
    total = total + net(torch.randn(512, 256)).mean()
    pause(0.007)
"""


def test_a_loop_that_only_computes_is_looked_into(script):
    # Not the first census that there is: while torch is loaded there is no graph yet.
    until = several(1, "census", graphs=lambda graphs: any(2 * one["more_bytes"] > one["of_bytes"] for one in graphs))
    _, receiver = watched([sys.executable, script(PAUSE + COMPUTES)], until=until)
    taken = receiver.of("census")
    assert [census["number"] for census in taken][:2] == [1, 2]
    (graph,) = taken[-1]["graphs"]
    assert graph["name"] == "__main__.total"


def first_holder(*names):
    """The condition that a census names one of these first. The first ones may come while a library is loaded, for as long as
    that lasts on a busy machine, and name what it takes."""
    return several(1, "census", holders=lambda holders: bool(holders) and holders[0]["name"] in names)


STEPS = """
import torch
torch.set_num_threads(1)
weight = torch.nn.Parameter(torch.ones(4))
optimizer = torch.optim.SGD([weight], lr=0.1)
kept = []
while not heard():
    kept.append(torch.ones(1 << 18))
    weight.grad = torch.ones(4)
    optimizer.step()
    pause(0.025)
"""


def test_an_optimizers_step_is_a_moment(script):
    _, receiver = watched([sys.executable, script(PAUSE + STEPS)], until=first_holder("__main__.kept"))
    holder = receiver.of("census")[-1]["holders"][0]
    assert holder["line"] == place_of("kept.append", PAUSE + STEPS)


WORKER = """
import torch
class Samples(torch.utils.data.Dataset):
    def __init__(self):
        self.cache = {}
    def __len__(self):
        return 1_000_000
    def __getitem__(self, index):
        pause(0.02)
        self.cache[index] = bytearray(1 << 20)
        return index
if __name__ == "__main__":
    torch.set_num_threads(1)
    for _ in torch.utils.data.DataLoader(Samples(), num_workers=1, multiprocessing_context="fork"):
        if heard():
            break
"""


def test_a_loaders_worker_is_looked_into(script):
    # By torch's local variable or, where the look came in a method of it, by the method's.
    until = first_holder("dataset.cache", "self.cache")
    _, receiver = watched([sys.executable, script(PAUSE + WORKER)], until=until)
    (holder,) = [one["holders"][0] for one in receiver.of("census") if until([one])][:1]
    assert holder["owner"] == "__main__.Samples"


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


OFTEN = """
import torch
net, called = torch.nn.Identity(), torch.nn.Module.__dict__
print(type(called["__call__"]).__name__)
while type(called["__call__"]).__name__ == "Access":  # to which nothing else may refer
    for _ in range(10_000):
        net(None)
print(type(called["__call__"]).__name__)
"""


def test_a_model_is_called_while_its_call_is_put_back(script):
    # In the midst of the call that gives the moment: calls come too thick here.
    done, _ = watched([sys.executable, script(OFTEN)])
    assert done.stdout == b"Access\nfunction\n", done.stderr
