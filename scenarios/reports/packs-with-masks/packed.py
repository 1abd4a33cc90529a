"""Packs samples of different lengths into rows of one length, before the training starts"""

import torch
from torch.utils.data import Dataset

IGNORE = -100


class PackedDataset(Dataset):
    """
    Each pack holds the tokens of some samples one after the other, their labels and positions, and the mask by which
    a token sees the former tokens of its own sample only.
    """

    def __init__(self, samples, max_seq_len, padding, max_packs=None):
        self.samples, self.max_seq_len, self.padding, self.max_packs = samples, max_seq_len, padding, max_packs
        self.packs = []
        self._pack()

    def _pack(self):
        pack = self._empty()
        for number, (tokens, labels) in enumerate(self.samples, 1):
            if len(tokens) > self.max_seq_len:
                raise ValueError(f"sample {number} is longer than max_seq_len ({len(tokens)} > {self.max_seq_len})")
            if len(pack["tokens"]) + len(tokens) > self.max_seq_len:
                self._add_pack(pack)
                pack = self._empty()
            pack["tokens"].extend(tokens)
            pack["labels"].extend(labels)
            pack["input_pos"].extend(range(len(tokens)))
            pack["lengths"].append(len(tokens))
            if number % 500 == 0:
                print(f"Packing dataset: {number} samples, {len(self.packs)} packs", flush=True)
            if self.max_packs is not None and len(self.packs) >= self.max_packs:
                return
        if pack["tokens"]:
            self._add_pack(pack)

    @staticmethod
    def _empty():
        return {"tokens": [], "labels": [], "input_pos": [], "lengths": []}

    def _add_pack(self, pack):
        rest = self.max_seq_len - len(pack["tokens"])
        mask = torch.zeros(self.max_seq_len, self.max_seq_len, dtype=torch.bool)
        start = 0
        for length in pack["lengths"]:
            mask[start : start + length, start : start + length] = torch.tril(torch.ones(length, length)) > 0
            start += length
        mask.diagonal()[start:] = True
        self.packs.append(
            {
                "tokens": torch.tensor(pack["tokens"] + [self.padding] * rest),
                "labels": torch.tensor(pack["labels"] + [IGNORE] * rest),
                "input_pos": torch.tensor(pack["input_pos"] + [0] * rest),
                "mask": mask,
            }
        )

    def __len__(self):
        return len(self.packs)

    def __getitem__(self, index):
        return self.packs[index]
