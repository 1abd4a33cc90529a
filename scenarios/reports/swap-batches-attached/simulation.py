"""States of atomistic systems, a potential, and a batcher that swaps relaxed systems for new ones"""

import dataclasses

import torch
from torch import nn


@dataclasses.dataclass
class SimState:
    """Several systems of the same size: positions (systems, atoms, 3), energy (systems), forces as positions."""

    positions: torch.Tensor
    energy: torch.Tensor
    forces: torch.Tensor
    index: torch.Tensor
    steps: torch.Tensor

    def __getitem__(self, chosen):
        return SimState(**{name: value[chosen] for name, value in vars(self).items()})

    @staticmethod
    def concatenate(states):
        names = [field.name for field in dataclasses.fields(SimState)]
        return SimState(**{name: torch.cat([getattr(state, name) for state in states]) for name in names})


class PairPotential(nn.Module):
    """Energies of pairs by their distance; forces as the gradient, of which losses for training can be taken."""

    def __init__(self, bases=16, hidden=32):
        super().__init__()
        self.register_buffer("centres", torch.linspace(0.5, 5.0, bases))
        self.layers = nn.Sequential(
            nn.Linear(bases, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, 1)
        )

    def energy(self, positions):
        atoms = positions.shape[1]
        between = positions[:, :, None] - positions[:, None]
        distance = (between.square().sum(-1) + 1e-3).sqrt()
        basis = torch.exp(-2.0 * (distance[..., None] - self.centres).square())
        pairs = self.layers(basis).squeeze(-1) + 0.2 / distance
        return (pairs * (1 - torch.eye(atoms))).sum((1, 2)) / 2

    def forward(self, positions):
        if not positions.requires_grad:
            positions = positions.detach().requires_grad_(True)
        energy = self.energy(positions)
        (gradient,) = torch.autograd.grad(energy.sum(), positions, create_graph=True)
        return energy, -gradient


def initialize(model, positions, index):
    energy, forces = model(positions)
    return SimState(positions, energy, forces, index, torch.zeros(len(index), dtype=torch.long))


def gradient_descent_step(model, state, rate=0.02):
    step = (rate * state.forces).clamp(-0.1, 0.1)
    state.positions = state.positions + step
    state.energy, state.forces = model(state.positions)
    state.steps = state.steps + 1
    return state


class InFlightAutoBatcher:
    """Fills the places of relaxed systems with those that wait."""

    def __init__(self, model, systems, places):
        self.model, self.waiting, self.places = model, iter(systems), places

    def _next(self, count):
        fresh = [system for _, system in zip(range(count), self.waiting)]
        if not fresh:
            return []
        index = torch.tensor([number for number, _ in fresh])
        return [initialize(self.model, torch.stack([positions for _, positions in fresh]), index)]

    def next_batch(self, state=None, converged=None):
        """The next batch, and the states that are done."""
        if state is None:
            return SimState.concatenate(self._next(self.places)), []
        if not converged.any():
            return state, []
        done = [state[number : number + 1] for number in converged.nonzero().flatten().tolist()]
        parts = [state[~converged]] if not converged.all() else []
        parts += self._next(self.places - int((~converged).sum()))
        return (SimState.concatenate(parts) if parts else None), done
