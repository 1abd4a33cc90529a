"""Examples of a receptor and a ligand, from files of typed atoms, and the grids of their densities"""

import os
import random

import numpy as np
import torch

TYPES, RECEPTOR_ATOMS, LIGAND_ATOMS, SIDE, RESOLUTION = 28, 4000, 30, 24, 1.0
RADII = np.linspace(1.0, 2.2, TYPES, dtype=np.float32)


def write_types(root, examples):
    rng = np.random.default_rng(21)
    with open(os.path.join(root, "examples.types"), "w") as file:
        for number in range(examples):
            for kind, atoms, spread in (("rec", RECEPTOR_ATOMS, 14.0), ("lig", LIGAND_ATOMS, 4.0)):
                table = np.empty((atoms, 4), np.float32)
                table[:, :3] = rng.standard_normal((atoms, 3)) * spread
                table[:, 3] = rng.integers(0, TYPES // 2, atoms) + (TYPES // 2 if kind == "lig" else 0)
                table.tofile(os.path.join(root, f"{number:04d}_{kind}.gninatypes"))
            file.write(f"{number % 2} {number:04d}_rec.gninatypes {number:04d}_lig.gninatypes\n")


class CoordinateSet:
    def __init__(self, path):
        table = np.fromfile(path, np.float32).reshape(-1, 4)
        self.coords = table[:, :3].copy()
        self.type_index = table[:, 3].astype(np.int64)
        self.type_vector = np.zeros((len(table), TYPES), np.float32)
        self.type_vector[np.arange(len(table)), self.type_index] = 1.0
        self.radii = self.type_vector @ RADII


class ExampleProvider:
    def __init__(self, root, cache_structs=True):
        self.root, self.cache_structs, self.structs = root, cache_structs, {}
        with open(os.path.join(root, "examples.types")) as file:
            self.lines = [line.split() for line in file]
        self.order, self.shuffle, self.epoch = [], random.Random(8), 0

    def struct(self, name):
        if name in self.structs:
            return self.structs[name]
        loaded = CoordinateSet(os.path.join(self.root, name))
        if self.cache_structs:
            self.structs[name] = loaded
        return loaded

    def next_batch(self, size):
        batch = []
        while len(batch) < size:
            if not self.order:
                self.order = list(range(len(self.lines)))
                self.shuffle.shuffle(self.order)
                self.epoch += 1
            label, receptor, ligand = self.lines[self.order.pop()]
            batch.append((int(label), self.struct(receptor), self.struct(ligand)))
        return batch


class GridMaker:
    def __init__(self):
        self.offsets = np.stack(np.meshgrid(*[np.arange(-2, 3)] * 3, indexing="ij"), -1).reshape(-1, 3)

    def add(self, grid, struct, center):
        place = (struct.coords - center) / RESOLUTION + SIDE / 2
        inside = ((place > 2) & (place < SIDE - 3)).all(axis=1)
        place, kinds, radii = place[inside], struct.type_index[inside], struct.radii[inside]
        cells = np.rint(place).astype(np.int64)[:, None] + self.offsets[None]
        squared = ((cells - place[:, None]) ** 2).sum(axis=2)
        density = np.exp(-2.0 * squared / radii[:, None] ** 2).astype(np.float32)
        flat = ((kinds[:, None] * SIDE + cells[..., 0]) * SIDE + cells[..., 1]) * SIDE + cells[..., 2]
        np.add.at(grid.reshape(-1), flat.reshape(-1), density.reshape(-1))

    def forward(self, batch):
        grids = np.zeros((len(batch), TYPES, SIDE, SIDE, SIDE), np.float32)
        for grid, (_, receptor, ligand) in zip(grids, batch):
            center = ligand.coords.mean(axis=0)
            self.add(grid, receptor, center)
            self.add(grid, ligand, center)
        return torch.from_numpy(grids)
