"""Symbolic regression: two processes draw equations and evaluate them, and a set encoder learns their classes"""

import itertools
import linecache
import multiprocessing
import queue
import time

import numpy as np
import torch

SECONDS = 27.0
TERMS, POINTS = 400, 500
FUNCTIONS = {"sin": np.sin, "cos": np.cos, "exp": np.tanh, "sqrt": lambda x: np.sqrt(np.abs(x)), "abs": np.abs}
_counter = itertools.count(1)


def lambdify(names, terms):
    """A function of the variables that evaluates the sum of the terms, as source that tracebacks can show"""
    filename = f"<lambdifygenerated-{next(_counter)}>"
    lines = [f"def _lambdifygenerated({', '.join(names)}):\n", '    """Created with lambdify. Expression:\n\n']
    lines += [f"    + {term}\n" for term in terms]
    lines += ['    """\n', "    total = 0.0\n"]
    lines += [f"    total = total + {term}\n" for term in terms]
    lines.append("    return total\n")
    source = "".join(lines)
    namespace = dict(FUNCTIONS)
    exec(compile(source, filename, "exec"), namespace)
    # tracebacks and inspect.getsource() look here
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    return namespace.pop("_lambdifygenerated")


def draw_equation(generator):
    names = list(FUNCTIONS)
    outer = int(generator.integers(len(names)))
    coefficients = generator.standard_normal((TERMS, 3))
    inner = generator.integers(len(names), size=TERMS)
    variables = generator.integers(3, size=(TERMS, 2))
    terms = [
        f"{a:.12f}*{names[outer if k % 2 else i]}({b:.12f}*x_{u} + {c:.12f}*x_{v})"
        for k, ((a, b, c), i, (u, v)) in enumerate(zip(coefficients.tolist(), inner.tolist(), variables.tolist()))
    ]
    return outer, terms


def produce(seed, equations, stop):
    generator = np.random.default_rng(seed)
    drawn = 0
    while not stop.is_set():
        skeleton, terms = draw_equation(generator)
        function = lambdify(["x_0", "x_1", "x_2"], terms)
        support = generator.uniform(-4, 4, (3, POINTS))
        values = function(*support)
        drawn += 1
        values = (values - values.mean()) / (values.std() + 1e-6)
        points = np.concatenate([support, values[None]]).astype(np.float32).T.copy()
        try:
            equations.put((skeleton, points), timeout=1.0)
        except queue.Full:
            continue
    equations.cancel_join_thread()
    print(f"process {seed}: {drawn} equations", flush=True)


class SetEncoder(torch.nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.points = torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.GELU(), torch.nn.Linear(width, width))
        self.head = torch.nn.Linear(width, len(FUNCTIONS))

    def forward(self, sets):
        return self.head(self.points(sets).mean(1))


def main():
    torch.set_num_threads(1)
    context = multiprocessing.get_context("fork")
    equations, stop = context.Queue(maxsize=16), context.Event()
    producers = [context.Process(target=produce, args=(seed, equations, stop)) for seed in (1, 2)]
    for producer in producers:
        producer.start()
    model = SetEncoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    started, step = time.monotonic(), 0
    while time.monotonic() - started < SECONDS:
        drawn = [equations.get() for _ in range(8)]
        sets = torch.from_numpy(np.stack([points for _, points in drawn]))
        classes = torch.tensor([skeleton for skeleton, _ in drawn])
        loss = torch.nn.functional.cross_entropy(model(sets), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 20 == 0:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)
    stop.set()
    for producer in producers:
        producer.join()


if __name__ == "__main__":
    main()
