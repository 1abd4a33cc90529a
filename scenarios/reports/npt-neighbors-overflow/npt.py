"""Soft spheres at a constant pressure, with a neighbour list of a fixed capacity for each atom"""

import dataclasses
import time

import torch

torch.set_num_threads(1)
SECONDS, COMPRESS_S, SETTLE_S = 39.0, 12.0, 3.0
ATOMS, CHUNK, STEPS_PER_CYCLE = 6000, 300, 10
BOX_START, BOX_LOWEST, BOX_END = 7.48, 4.25, 4.38
CUTOFF, SKIN, CAPACITY_MULTIPLIER = 0.85, 0.15, 1.25
STEP, TEMPERATURE = 0.002, 0.004


@dataclasses.dataclass
class NeighborList:
    """For each atom the indices of its neighbours, padded with the number of atoms"""

    idx: torch.Tensor
    did_buffer_overflow: bool = False


def near(positions, box):
    """For some atoms at a time: which others are within reach"""
    for start in range(0, ATOMS, CHUNK):
        part = positions[start:start + CHUNK]
        distance2 = torch.zeros(len(part), ATOMS)
        for axis in range(3):
            delta = part[:, axis, None] - positions[None, :, axis]
            delta -= box * torch.round(delta / box)
            distance2 += delta * delta
        within = distance2 < (CUTOFF + SKIN) ** 2
        within[torch.arange(len(part)), start + torch.arange(len(part))] = False
        yield start, within


def allocate(positions, box):
    most = max(int(within.sum(1).max()) for _, within in near(positions, box))
    capacity = int(most * CAPACITY_MULTIPLIER)
    return update(positions, box, NeighborList(torch.empty(ATOMS, capacity, dtype=torch.long)))


def update(positions, box, neighbors):
    idx = neighbors.idx.fill_(ATOMS)
    for start, within in near(positions, box):
        counts = within.sum(1)
        if int(counts.max()) > idx.shape[1]:
            return NeighborList(idx, did_buffer_overflow=True)
        rows, columns = within.nonzero(as_tuple=True)
        first = torch.cumsum(counts, 0) - counts
        places = torch.arange(len(rows)) - torch.repeat_interleave(first, counts)
        idx[start + rows, places] = columns
    return NeighborList(idx)


def forces(positions, box, neighbors):
    """Repulsion that falls to zero at the cutoff; the forces and the energy"""
    padded = torch.cat([positions, torch.zeros(1, 3)])
    delta = positions[:, None] - padded[neighbors.idx]
    delta -= box * torch.round(delta / box)
    distance = delta.norm(dim=-1).add_(1e-6)
    strength = (1 - distance / CUTOFF).clamp_(min=0)
    strength[neighbors.idx == ATOMS] = 0
    energy = 0.25 * CUTOFF * (strength * strength).sum()
    delta *= (strength / distance)[..., None]
    return delta.sum(1), energy


def box_at(elapsed):
    """The barostat: below the final size for a moment, and then at it"""
    if elapsed < COMPRESS_S:
        return BOX_START + (BOX_LOWEST - BOX_START) * elapsed / COMPRESS_S
    if elapsed < COMPRESS_S + SETTLE_S:
        return BOX_LOWEST + (BOX_END - BOX_LOWEST) * (elapsed - COMPRESS_S) / SETTLE_S
    return BOX_END


def main():
    torch.manual_seed(1)
    box = BOX_START
    positions = torch.rand(ATOMS, 3) * box
    neighbors = allocate(positions, box)
    started, cycles = time.monotonic(), 0
    while time.monotonic() - started < SECONDS:
        new_box = box_at(time.monotonic() - started)
        positions *= new_box / box
        box = new_box
        neighbors = update(positions, box, neighbors)
        if neighbors.did_buffer_overflow:
            print("Neighbor list overflowed, reallocating.", flush=True)
            neighbors = allocate(positions, box)
        for _ in range(STEPS_PER_CYCLE):
            push, energy = forces(positions, box, neighbors)
            positions += STEP * push + (2 * STEP * TEMPERATURE) ** 0.5 * torch.randn(ATOMS, 3)
            positions %= box
        cycles += 1
        if cycles % 5 == 0:
            print(f"cycle {cycles}: box {box:.3f}, energy {energy.item() / ATOMS:.4f}", flush=True)


if __name__ == "__main__":
    main()
