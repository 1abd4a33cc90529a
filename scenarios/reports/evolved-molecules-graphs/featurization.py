"""Graphs of molecules: features of atoms and bonds, as the message passing network takes them"""

import torch

ELEMENTS = ["C", "N", "O", "S", "F", "P", "B", "I"]
MAX_ATOMIC_NUM, BOND_FDIM_OWN = 100, 14
ATOM_FDIM = MAX_ATOMIC_NUM + 33
BOND_FDIM = ATOM_FDIM + BOND_FDIM_OWN

# Memoization
SMILES_TO_GRAPH = {}


def onek_encoding_unk(value, choices):
    encoding = [0] * (choices + 1)
    encoding[min(value, choices)] = 1
    return encoding


def parse(smiles):
    """Atoms, and the bonds between them: chains, branches and rings of the small alphabet used here"""
    atoms, bonds, stack, rings, last = [], [], [], {}, None
    for character in smiles:
        if character == "(":
            stack.append(last)
        elif character == ")":
            last = stack.pop()
        elif character.isdigit():
            if character in rings:
                bonds.append((rings.pop(character), last))
            else:
                rings[character] = last
        else:
            atoms.append(ELEMENTS.index(character))
            if last is not None:
                bonds.append((last, len(atoms) - 1))
            last = len(atoms) - 1
    return atoms, bonds


class MolGraph:
    def __init__(self, smiles):
        self.smiles = smiles
        atoms, bonds = parse(smiles)
        degrees = [0] * len(atoms)
        for first, second in bonds:
            degrees[first] += 1
            degrees[second] += 1
        self.n_atoms, self.n_bonds = len(atoms), 0
        self.f_atoms = [self.atom_features(atom, degree) for atom, degree in zip(atoms, degrees)]
        self.f_bonds, self.b2a, self.b2revb = [], [], []
        self.a2b = [[] for _ in atoms]
        for number, (first, second) in enumerate(bonds):
            own = onek_encoding_unk(number % 4, 6) + onek_encoding_unk(abs(first - second) % 6, 6)
            self.f_bonds.append(self.f_atoms[first] + own)
            self.f_bonds.append(self.f_atoms[second] + own)
            forward, backward = self.n_bonds, self.n_bonds + 1
            self.a2b[second].append(forward)
            self.b2a.append(first)
            self.a2b[first].append(backward)
            self.b2a.append(second)
            self.b2revb += [backward, forward]
            self.n_bonds += 2

    def atom_features(self, atom, degree):
        return (
            onek_encoding_unk(atom, MAX_ATOMIC_NUM)
            + onek_encoding_unk(degree, 6)
            + onek_encoding_unk(atom % 5, 5)
            + onek_encoding_unk(degree % 4, 4)
            + onek_encoding_unk(4 - min(degree, 4), 5)
            + [0] * 7
            + [1 if degree > 2 else 0, atom * 0.01]
        )[:ATOM_FDIM]


class BatchMolGraph:
    def __init__(self, graphs):
        f_atoms, f_bonds, b2a, b2revb, atom_of, molecule_of, targets = [], [], [], [], 0, [], []
        offset = 0
        for number, graph in enumerate(graphs):
            f_atoms += graph.f_atoms
            f_bonds += graph.f_bonds
            b2a += [atom_of + atom for atom in graph.b2a]
            b2revb += [offset + bond for bond in graph.b2revb]
            targets += [atom_of + graph.b2a[bond] for bond in graph.b2revb]
            molecule_of += [number] * graph.n_atoms
            atom_of += graph.n_atoms
            offset += graph.n_bonds
        self.f_atoms = torch.tensor(f_atoms, dtype=torch.float32)
        self.f_bonds = torch.tensor(f_bonds, dtype=torch.float32)
        self.b2a, self.b2revb = torch.tensor(b2a), torch.tensor(b2revb)
        self.targets, self.molecule_of = torch.tensor(targets), torch.tensor(molecule_of)
        self.molecules = len(graphs)


def mol2graph(smiles_batch, cache=True):
    graphs = []
    for smiles in smiles_batch:
        if smiles in SMILES_TO_GRAPH:
            graph = SMILES_TO_GRAPH[smiles]
        else:
            graph = MolGraph(smiles)
            if cache:
                SMILES_TO_GRAPH[smiles] = graph
        graphs.append(graph)
    return BatchMolGraph(graphs)
