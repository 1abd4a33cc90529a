"""Relaxes many small clusters, a few at a time, with a learned potential"""

import time

import torch

from simulation import InFlightAutoBatcher, PairPotential, gradient_descent_step

torch.set_num_threads(1)
SYSTEMS, ATOMS, PLACES = 48, 24, 6
FORCE_LIMIT, MOST_STEPS = 0.01, 11
SECONDS, STEP_S = 36.0, 0.38


def clusters(seed):
    generator = torch.Generator().manual_seed(seed)
    for number in range(SYSTEMS):
        yield number, 4.0 * torch.rand(ATOMS, 3, generator=generator)


@torch.no_grad()
def committee_spread(committee, positions, until):
    """How far the committee disagrees, from as many perturbed copies as the step has time for."""
    spreads = []
    while True:
        moved = positions + 0.01 * torch.randn_like(positions)
        energies = torch.stack([member.energy(moved) for member in committee])
        spreads.append(energies.std(0).mean().item())
        if time.monotonic() >= until:
            return sum(spreads) / len(spreads)


def main():
    torch.manual_seed(0)
    model = PairPotential()
    committee = [PairPotential() for _ in range(3)]
    batcher = InFlightAutoBatcher(model, clusters(1), PLACES)
    state, _ = batcher.next_batch()
    relaxed, begin, step = [], time.monotonic(), 0
    while state is not None and time.monotonic() - begin < SECONDS:
        until = time.monotonic() + STEP_S
        state = gradient_descent_step(model, state)
        step += 1
        spread = committee_spread(committee, state.positions.detach(), until)
        largest = state.forces.detach().norm(dim=-1).amax(1)
        # Systems that were started together do not end together.
        converged = (largest < FORCE_LIMIT) | (state.steps >= MOST_STEPS + state.index % 4)
        state, done = batcher.next_batch(state, converged)
        relaxed.extend(done)
        if step % 10 == 0:
            print(f"step {step}: {len(relaxed)} relaxed, spread {spread:.4f}", flush=True)
    energies = sorted((int(done.index), done.energy.item()) for done in relaxed)
    print(f"{len(energies)} of {SYSTEMS} relaxed, lowest {min(energy for _, energy in energies):.3f}")


if __name__ == "__main__":
    main()
