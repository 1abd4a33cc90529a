"""A loader that can be saved and resumed: with every batch its worker also sends what it needs to go on from there"""

import copy

from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class _StatefulStream(IterableDataset):
    def __init__(self, dataset, snapshot_every_n_steps):
        self.dataset, self.every = dataset, snapshot_every_n_steps

    def __iter__(self):
        info = get_worker_info()
        self.dataset.start(info.id, info.num_workers)
        for step, batch in enumerate(self.dataset, 1):
            state = copy.deepcopy(self.dataset.state_dict()) if step % self.every == 0 else None
            yield {"batch": batch, "worker": info.id, "state": state}


def unchanged(message):
    return message


class StatefulDataLoader:
    def __init__(self, dataset, num_workers, prefetch_factor=1, snapshot_every_n_steps=1):
        stream = _StatefulStream(dataset, snapshot_every_n_steps)
        self.loader = DataLoader(
            stream, batch_size=None, num_workers=num_workers, prefetch_factor=prefetch_factor, collate_fn=unchanged
        )
        self.worker_snapshots = {}
        self.steps_since = {}

    def __iter__(self):
        for message in self.loader:
            worker = message["worker"]
            if message["state"] is not None:
                self.worker_snapshots[worker] = message["state"]
                self.steps_since[worker] = 0
            else:
                self.steps_since[worker] = self.steps_since.get(worker, 0) + 1
            yield message["batch"]

    def state_dict(self):
        return {"snapshots": copy.deepcopy(self.worker_snapshots), "steps_since": dict(self.steps_since)}
