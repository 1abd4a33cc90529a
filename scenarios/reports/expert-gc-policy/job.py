"""Trains a layer of experts on two ranks"""

import time

import torch
import torch.distributed as dist

from engine import WIDTH, Engine, ExpertLayer

torch.set_num_threads(1)
EXPERTS, TOKENS, STEPS, STEP_S = 24, 96, 330, 0.1
CONFIG = {"expert_parallel": {"enabled": True, "python_gc_policy": "disable_during_training"}}


def routes_of(step, generator):
    """Topics come up one after the other; each goes to the experts that have come to know it."""
    known = min(EXPERTS, 2 + step // 4)
    return torch.randint(0, known, (TOKENS,), generator=generator)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(rank)
    model = ExpertLayer(EXPERTS)
    engine = Engine(model, CONFIG)
    for step in range(STEPS):
        until = time.monotonic() + STEP_S
        tokens = torch.randn(TOKENS, WIDTH, generator=generator)
        routes = routes_of(step, generator)
        loss = engine.step(tokens, routes, tokens.roll(1, 1))
        # What is left of the step's time goes to the balance of the experts.
        with torch.no_grad():
            while time.monotonic() < until:
                model(tokens, routes)
        if rank == 0 and step % 30 == 0:
            print(f"step {step}: loss {loss:.4f}, {len(routes.unique())} experts in use", flush=True)
    engine.destroy()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
