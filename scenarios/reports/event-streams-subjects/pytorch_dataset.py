"""Subjects with their events in time: what was measured in each, and how long after the one before"""

import numpy as np
import torch
from torch.utils.data import Dataset

VOCABULARY, EVENTS, MEASURED = 18000, 20, 25


def cached_frame(subjects):
    """The columns of the frame, subject by subject"""
    for subject in range(subjects):
        source = np.random.default_rng(subject)
        yield {
            "subject_id": subject + 100000,
            "static_indices": source.integers(1, VOCABULARY, 6),
            "time_delta": source.exponential(600.0, EVENTS),
            "dynamic_indices": source.integers(1, VOCABULARY, (EVENTS, MEASURED)),
            "dynamic_values": source.normal(0.0, 1.0, (EVENTS, MEASURED)),
        }


class PytorchDataset(Dataset):
    columns = ("static_indices", "time_delta", "dynamic_indices", "dynamic_values")

    def __init__(self, subjects, max_seq_len=16):
        self.max_seq_len, self.subject_ids, self.cached_data = max_seq_len, [], []
        for row in cached_frame(subjects):
            self.subject_ids.append(row["subject_id"])
            self.cached_data.append([row[column].tolist() for column in self.columns])

    def __len__(self):
        return len(self.subject_ids)

    def __getitem__(self, index):
        static, delta, indices, values = self.cached_data[index]
        if not all(value == value for event in values for value in event):
            raise ValueError(f"subject {self.subject_ids[index]} has values that are not numbers")
        # The longest stay is cut to the events with the most measurements in the vocabulary
        weights = [sum(one for one in event if one < VOCABULARY) for event in indices]
        kept = sorted(sorted(range(EVENTS), key=weights.__getitem__)[-self.max_seq_len :])
        return {
            "static_indices": static[:],
            "time_delta": [delta[event] for event in kept],
            "dynamic_indices": [indices[event] for event in kept],
            "dynamic_values": [values[event] for event in kept],
        }

    def collate(self, subjects):
        return {
            "static_indices": torch.tensor([one["static_indices"] for one in subjects]),
            "time_delta": torch.tensor([one["time_delta"] for one in subjects]),
            "dynamic_indices": torch.tensor([one["dynamic_indices"] for one in subjects]),
            "dynamic_values": torch.tensor([one["dynamic_values"] for one in subjects]),
        }
