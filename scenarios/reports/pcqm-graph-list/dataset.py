"""Molecules as graphs, in one list in memory, as the classes of graph datasets have it"""

import random

import torch
from torch.utils.data import Dataset

ATOM_KINDS, BOND_KINDS = (119, 5, 12, 12, 10, 6, 6, 2, 2), (5, 6, 2)


class Graph:
    """Nodes with their features and positions, edges with theirs, as a parser of molecules gives them"""

    __slots__ = ("nodes", "positions", "edges", "label")

    def __init__(self, nodes, positions, edges, label):
        self.nodes, self.positions, self.edges, self.label = nodes, positions, edges, label


def parse(source):
    """One molecule: a chain of atoms with rings and side chains"""
    count = source.randrange(36, 52)
    nodes = [tuple([source.randrange(kinds) for kinds in ATOM_KINDS]) for _ in range(count)]
    positions = [(source.gauss(0, 3), source.gauss(0, 3), source.gauss(0, 3)) for _ in range(count)]
    edges = []
    for node in range(1, count):
        for other in {max(0, node - 1), source.randrange(node)}:
            bond = tuple([source.randrange(kinds) for kinds in BOND_KINDS])
            edges += [(node, other, *bond), (other, node, *bond)]
    return Graph(nodes, positions, edges, source.gauss(5.5, 1.2))


class MoleculeDataset(Dataset):
    def __init__(self, count, seed=0):
        source = random.Random(seed)
        self.graphs = [parse(source) for _ in range(count)]

    def __len__(self):
        return len(self.graphs)

    def __getitem__(self, index):
        graph = self.graphs[index]
        return {
            "x": torch.tensor(graph.nodes),
            "pos": torch.tensor(graph.positions),
            "edges": torch.tensor(graph.edges),
            "y": graph.label,
        }


def collate(samples):
    sizes = torch.tensor([len(one["x"]) for one in samples])
    starts = sizes.cumsum(0) - sizes
    edges = torch.cat([one["edges"][:, :2] + start for one, start in zip(samples, starts)])
    return {
        "x": torch.cat([one["x"] for one in samples]),
        "pos": torch.cat([one["pos"] for one in samples]),
        "edges": edges,
        "bonds": torch.cat([one["edges"][:, 2:] for one in samples]),
        "graph": torch.arange(len(samples)).repeat_interleave(sizes),
        "y": torch.tensor([one["y"] for one in samples]),
    }
