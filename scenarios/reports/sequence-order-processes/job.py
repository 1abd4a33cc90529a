"""Trains an acoustic model; the train and the dev data are loaded by processes of their own"""

import os
import tempfile
import time

from corpus import FEATURES, LABELS, write_corpus
from multi_proc import MultiProcDataset

TRAIN, DEV, BATCH, EPOCHS = 90_000, 65_000, 24, 3
TRAIN_STEPS, DEV_STEPS, STEP_S = 70, 20, 0.045


def batches(dataset, epoch, steps):
    batch = []
    for sequence in dataset.sequences(epoch, steps * BATCH):
        batch.append(sequence)
        if len(batch) == BATCH:
            yield batch
            batch = []


def main():
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(0)

    class Encoder(nn.Module):
        def __init__(self, width=96):
            super().__init__()
            self.rnn = nn.GRU(FEATURES, width, batch_first=True)
            self.out = nn.Linear(width, LABELS)

        def forward(self, features, lengths):
            packed = nn.utils.rnn.pack_padded_sequence(features, lengths, batch_first=True, enforce_sorted=False)
            return self.out(self.rnn(packed)[1][0])

    model = Encoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

    def loss_of(batch):
        features = nn.utils.rnn.pad_sequence([torch.from_numpy(one[0]) for one in batch], batch_first=True)
        targets = torch.tensor([int(one[1][0]) for one in batch])
        lengths = torch.tensor([len(one[0]) for one in batch])
        return nn.functional.cross_entropy(model(features, lengths), targets)

    with tempfile.TemporaryDirectory() as folder:
        datasets = {}
        for name, sequences, partition in (("train", TRAIN, 20), ("dev", DEV, 40)):
            path = os.path.join(folder, f"{name}.jsonl.gz")
            write_corpus(path, sequences, seed=len(name))
            options = {"path": path, "segment_filter": 0.5}
            datasets[name] = MultiProcDataset(name, options, num_workers=2, buffer_size=12, partition=partition)
            print(f"{name}: {len(datasets[name].processes)} processes are ready", flush=True)

        for epoch in range(1, EPOCHS + 1):
            begin = time.monotonic()
            for step, batch in enumerate(batches(datasets["train"], epoch, TRAIN_STEPS), 1):
                loss = loss_of(batch)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                while time.monotonic() < begin + step * STEP_S:
                    model.rnn.flatten_parameters()
                    loss_of(batch[:4])
            with torch.no_grad():
                losses = [loss_of(batch).item() for batch in batches(datasets["dev"], epoch, DEV_STEPS)]
            print(f"epoch {epoch}: train {loss.item():.3f}, dev {sum(losses) / len(losses):.3f}", flush=True)
        for dataset in datasets.values():
            dataset.close()


if __name__ == "__main__":
    main()
