"""Proteins with their crystal waters: geometry from one cache on disk, embeddings from another"""

import os
from collections import OrderedDict

import torch
from torch.utils.data import Dataset

EMBEDDING, NEIGHBOURS = 256, 16


def preprocess(folder, proteins):
    """Writes the two cached files of each protein"""
    for number in range(proteins):
        generator = torch.Generator().manual_seed(number)
        residues = int(torch.randint(380, 520, (1,), generator=generator))
        positions = 20 * torch.rand(residues, 3, generator=generator)
        waters = positions[::3] + torch.randn(len(positions[::3]), 3, generator=generator)
        torch.save({"pos": positions, "water": waters}, os.path.join(folder, f"{number:04}_geometry.pt"))
        embedding = torch.randn(residues, EMBEDDING, generator=generator)
        torch.save({"esm": embedding}, os.path.join(folder, f"{number:04}_embedding.pt"))


def _load_torch_cache(path):
    return torch.load(path, mmap=True)


class ProteinWaterDataset(Dataset):
    def __init__(self, folder, proteins, sample_cache_size=0):
        self.folder, self.proteins, self.sample_cache_size = folder, proteins, sample_cache_size
        self._samples = OrderedDict()

    def __len__(self):
        return self.proteins

    def _build(self, index):
        geometry = _load_torch_cache(os.path.join(self.folder, f"{index:04}_geometry.pt"))
        embedding = _load_torch_cache(os.path.join(self.folder, f"{index:04}_embedding.pt"))["esm"]
        distances = torch.cdist(geometry["pos"], geometry["pos"])
        near, neighbours = distances.topk(NEIGHBOURS, largest=False)
        sources = torch.arange(len(distances)).repeat_interleave(NEIGHBOURS)
        return {
            "x": nn_normalize(embedding),
            "edge_index": torch.stack([sources, neighbours.flatten()]),
            "edge_attr": torch.exp(-(near.flatten()[:, None] - torch.linspace(0, 8, 8)).square()),
            "y": torch.cdist(geometry["pos"], geometry["water"]).amin(1),
        }

    def __getitem__(self, index):
        if index in self._samples:
            self._samples.move_to_end(index)
        else:
            sample = self._build(index)
            if not self.sample_cache_size:
                return sample
            self._samples[index] = sample
            if len(self._samples) > self.sample_cache_size:
                self._samples.popitem(last=False)
        return {key: value.clone() for key, value in self._samples[index].items()}


def nn_normalize(embedding):
    return (embedding - embedding.mean(1, keepdim=True)) / embedding.std(1, keepdim=True)


def collate(samples):
    starts = torch.tensor([0] + [len(one["x"]) for one in samples]).cumsum(0)
    batch = {key: torch.cat([one[key] for one in samples]) for key in ("x", "edge_attr", "y")}
    batch["edge_index"] = torch.cat([one["edge_index"] + start for one, start in zip(samples, starts)], 1)
    return batch
