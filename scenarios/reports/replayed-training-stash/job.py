"""Trains a classifier, then attributes its loss on the query to the examples that it was trained on"""

import time

import torch
from magic import WIDTHS, Stash, Trainer, copied, initial, predict
from torch import nn

torch.set_num_threads(1)
STEPS, EVERY, BATCH, QUERY = 144, 12, 16, 128
STEP_S, BACKWARD_S = 0.07, 0.07


class Batches:
    """Each step's examples come from its number, so that a replay has the same"""

    def __init__(self, seed):
        self.seed = seed
        self.centres = torch.randn(WIDTHS[-1], WIDTHS[0], generator=torch.Generator().manual_seed(seed))

    def __call__(self, step, count=BATCH):
        generator = torch.Generator().manual_seed(self.seed + 1 + step)
        targets = torch.randint(0, WIDTHS[-1], (count,), generator=generator)
        return self.centres[targets] + 2.0 * torch.randn(count, WIDTHS[0], generator=generator), targets


def query_loss(theta, query):
    return nn.functional.cross_entropy(predict(theta, query[0]), query[1])


def main():
    batches = Batches(seed=5)
    query = batches(10**6, QUERY)
    trainer, stash = Trainer(batches, initial(torch.Generator().manual_seed(0))), Stash()
    while trainer.step < STEPS:
        until = time.monotonic() + STEP_S
        if trainer.step % EVERY == 0:
            stash.save(trainer)
        loss = trainer.train_step()
        with torch.no_grad():
            validation = query_loss(trainer.state[0], query)
            while time.monotonic() < until:
                validation = 0.5 * (validation + query_loss(trainer.state[0], query))
        if trainer.step % EVERY == 0:
            print(f"step {trainer.step}: loss {loss:.3f}, query {validation.item():.3f}", flush=True)

    theta = trainer.state[0].detach().requires_grad_()
    (adjoint,) = torch.autograd.grad(query_loss(theta, query), theta)
    adjoint = [adjoint, torch.zeros_like(adjoint), torch.zeros_like(adjoint)]
    scores = {}
    for start in reversed(range(0, STEPS, EVERY)):
        stash.restore(trainer, start)
        stretch = []
        for _ in range(EVERY):
            stretch.append((trainer.step, copied(trainer.state)))
            trainer.train_step()
        while stretch:
            until = time.monotonic() + BACKWARD_S
            trainer.step, trainer.state = stretch.pop()
            adjoint, scores[trainer.step] = trainer.backward_step(adjoint)
            with torch.no_grad():
                while time.monotonic() < until:
                    query_loss(trainer.state[0], query)
        stash.drop(start)
        total = sum(one.sum().item() for one in scores.values())
        print(f"attributed steps {start} to {STEPS}: sum of the scores {total:.4f}", flush=True)
    best = max(scores, key=lambda step: scores[step].abs().max().item())
    print(f"the most influential example is in the batch of step {best}", flush=True)


if __name__ == "__main__":
    main()
