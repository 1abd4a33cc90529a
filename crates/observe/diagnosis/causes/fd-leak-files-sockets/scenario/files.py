"""A dataset that opens a file for each sample and keeps it open, in a loader worker.

The samples are numbers, not tensors: a tensor is handed over by a thread of the worker that needs descriptors
itself, and which of the two meets the limit first, or whether the loader then waits for ever, would be chance.
"""

import sys
import time

from torch.utils.data import DataLoader, Dataset


class Files(Dataset):
    def __init__(self, leak):
        self.leak = leak
        self.kept = []

    def __len__(self):
        return 2000

    def __getitem__(self, index):
        file = open(__file__, "rb")
        data = file.read(16)
        if self.leak:
            self.kept.append(file)
        else:
            file.close()
        time.sleep(0.005)
        return data[0]


if __name__ == "__main__":
    seen = 0
    for batch in DataLoader(Files(sys.argv[1] == "leak"), batch_size=10, num_workers=1, collate_fn=list):
        seen += len(batch)
        if seen == 500:
            break
    print("read", seen)
