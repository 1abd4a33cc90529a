"""Relax the structure of a cluster of atoms with a learned pair potential by a limited-memory quasi-Newton optimizer"""

import argparse
import dataclasses
import json
import time

import torch

torch.set_num_threads(1)


class PairPotential(torch.nn.Module):
    """A conservative model: the forces are the gradient of the energy by the positions"""

    def __init__(self, width=64):
        super().__init__()
        self.shape = torch.nn.Sequential(torch.nn.Linear(6, width), torch.nn.Tanh(), torch.nn.Linear(width, 1))
        for parameter in self.parameters():
            parameter.requires_grad_(False)

    def energy(self, positions, pairs):
        offsets = positions[pairs[0]] - positions[pairs[1]]
        distances = (offsets.square().sum(1) + 1e-2).sqrt()
        powers = distances[:, None] ** torch.arange(-3.0, 3.0)
        learned = self.shape(powers.tanh()).squeeze(1)
        return ((distances - 1.1).square() + 0.01 * learned).sum()

    def forward(self, positions, pairs):
        energy = self.energy(positions, pairs)
        (gradient,) = torch.autograd.grad(energy, positions)
        return energy.detach(), -gradient


@dataclasses.dataclass
class LBFGSState:
    positions: torch.Tensor
    energy: torch.Tensor
    forces: torch.Tensor
    s_history: torch.Tensor  # (history, atoms, 3)
    y_history: torch.Tensor
    step: int = 0


def lbfgs_init(model, positions, pairs):
    positions = positions.clone().requires_grad_(True)
    energy, forces = model(positions, pairs)
    empty = positions.new_zeros(0, *positions.shape)
    return LBFGSState(positions, energy, forces, empty, empty)


def two_loop(forces, s_history, y_history):
    """The direction of the next step from the last steps and the changes of the forces over them"""
    q, alphas = -forces, []
    for s, y in zip(reversed(s_history.unbind()), reversed(y_history.unbind())):
        rho = 1 / ((s * y).sum() + 1e-8)
        alpha = rho * (s * q).sum()
        q = q - alpha * y
        alphas.append((alpha, rho))
    if len(s_history):
        q = q * ((s_history[-1] * y_history[-1]).sum() / (y_history[-1].square().sum() + 1e-8)).clamp(1e-4, 1e-1)
    else:
        q = q * 1e-2
    for s, y, (alpha, rho) in zip(s_history.unbind(), y_history.unbind(), reversed(alphas)):
        q = q + s * (alpha - rho * (y * q).sum())
    return -q


def lbfgs_step(model, state, pairs, history=5, longest=0.02):
    direction = two_loop(state.forces, state.s_history, state.y_history)
    norms = direction.norm(dim=1, keepdim=True)
    move = direction * (longest / norms.clamp(min=longest))
    positions = state.positions + move
    energy, forces = model(positions, pairs)
    s_new, y_new = positions - state.positions, state.forces - forces
    s_history = torch.cat([state.s_history, s_new[None]])[-history:]
    y_history = torch.cat([state.y_history, y_new[None]])[-history:]
    return LBFGSState(positions, energy, forces, s_history, y_history, state.step + 1)


def neighbours(positions, count=64):
    nearest = torch.cdist(positions, positions).topk(count + 1, largest=False).indices[:, 1:]
    return torch.stack([torch.arange(len(positions)).repeat_interleave(count), nearest.reshape(-1)])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--atoms", type=int, default=800)
    parser.add_argument("--seconds", type=float, default=26)
    parser.add_argument("--log", default="relax.jsonl")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    start = torch.rand(arguments.atoms, 3) * arguments.atoms ** (1 / 3)
    model, pairs = PairPotential(), neighbours(start)
    state = lbfgs_init(model, start, pairs)
    until = time.monotonic() + arguments.seconds
    with open(arguments.log, "w") as log:
        while time.monotonic() < until:
            state = lbfgs_step(model, state, pairs)
            largest = state.forces.norm(dim=1).max().item()
            log.write(json.dumps({"step": state.step, "energy": state.energy.item(), "fmax": largest}) + "\n")
            if state.step % 100 == 0:
                print(f"step {state.step}: energy {state.energy.item():.3f} fmax {largest:.3f}", flush=True)


if __name__ == "__main__":
    main()
