"""Looks for molecules that the network scores high: changes the best ones, and scores what comes of it"""

import random
import time

import torch

from featurization import ATOM_FDIM, BOND_FDIM, ELEMENTS, mol2graph

torch.set_num_threads(1)
RUN_S, BATCH, BATCH_S = 32.0, 20, 0.15
SURVIVORS, ATOMS = 40, 34


class MPN(torch.nn.Module):
    def __init__(self, hidden=96, depth=3):
        super().__init__()
        self.depth = depth
        self.w_i = torch.nn.Linear(BOND_FDIM, hidden, bias=False)
        self.w_h = torch.nn.Linear(hidden, hidden, bias=False)
        self.w_o = torch.nn.Linear(ATOM_FDIM + hidden, hidden)
        self.ffn = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(hidden, 1))

    def forward(self, graph):
        first = self.w_i(graph.f_bonds)
        message = first.relu()
        atoms = len(graph.f_atoms)
        for _ in range(self.depth - 1):
            incoming = message.new_zeros(atoms, message.shape[1]).index_add_(0, graph.targets, message)
            message = (first + self.w_h(incoming[graph.b2a] - message[graph.b2revb])).relu()
        incoming = message.new_zeros(atoms, message.shape[1]).index_add_(0, graph.targets, message)
        hidden = self.w_o(torch.cat([graph.f_atoms, incoming], 1)).relu()
        summed = hidden.new_zeros(graph.molecules, hidden.shape[1]).index_add_(0, graph.molecule_of, hidden)
        return self.ffn(summed / ATOMS)[:, 0]


def random_smiles(draw):
    parts = [draw.choice(ELEMENTS[:4]) for _ in range(ATOMS)]
    return "".join(parts)


def mutate(smiles, draw):
    atoms = [character for character in smiles if character.isalpha()]
    for _ in range(3):
        atoms[draw.randrange(len(atoms))] = draw.choice(ELEMENTS)
    ring = draw.randrange(2, len(atoms) - 10)
    branch = draw.randrange(ring + 6, len(atoms) - 2)
    parts = [
        *atoms[:ring],
        "1",
        *atoms[ring : ring + 5],
        "1",
        *atoms[ring + 5 : branch],
        "(",
        *atoms[branch : branch + 2],
        ")",
        *atoms[branch + 2 :],
    ]
    return "".join(parts)


@torch.inference_mode()
def predict(model, smiles_batch):
    until = time.monotonic() + BATCH_S
    graph = mol2graph(smiles_batch)
    while True:
        scores = model(graph)
        if time.monotonic() > until:
            return scores.tolist()


def main():
    torch.manual_seed(0)
    draw, model = random.Random(1), MPN().eval()
    population = [(0.0, random_smiles(draw)) for _ in range(SURVIVORS)]
    end, batches = time.monotonic() + RUN_S, 0
    while time.monotonic() < end:
        candidates = [mutate(draw.choice(population)[1], draw) for _ in range(BATCH)]
        population += zip(predict(model, candidates), candidates)
        population = sorted(set(population), reverse=True)[:SURVIVORS]
        batches += 1
        if batches % 30 == 0:
            print(f"{batches * BATCH} molecules, best {population[0][0]:.4f} {population[0][1]}", flush=True)


if __name__ == "__main__":
    main()
