"""Pre-trains a model of event streams: from the events so far, what is measured next"""

import time

import torch
from pytorch_dataset import MEASURED, VOCABULARY, PytorchDataset
from torch import nn
from torch.utils.data import DataLoader

torch.set_num_threads(1)
SUBJECTS, BATCH, WORKERS, STEP_S, WIDTH = 6400, 10, 3, 0.042, 48


class EventStreamModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.measured = nn.Embedding(VOCABULARY, WIDTH)
        self.events = nn.GRU(WIDTH + 1, WIDTH, batch_first=True)
        self.leave = nn.Linear(WIDTH, MEASURED)

    def forward(self, batch):
        embedded = self.measured(batch["dynamic_indices"])
        events = (embedded * batch["dynamic_values"][..., None]).sum(2)
        events = events + self.measured(batch["static_indices"]).sum(1, keepdim=True)
        hidden, _ = self.events(torch.cat([events, batch["time_delta"].log1p()[..., None]], 2))
        return self.leave(hidden[:, :-1])


def main():
    torch.manual_seed(0)
    begin = time.monotonic()
    dataset = PytorchDataset(SUBJECTS)
    print(f"{len(dataset)} subjects in {time.monotonic() - begin:.1f} s", flush=True)
    loader = DataLoader(dataset, batch_size=BATCH, shuffle=True, num_workers=WORKERS, collate_fn=dataset.collate)
    model = EventStreamModel()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    begin = time.monotonic()
    for step, batch in enumerate(loader, 1):
        loss = nn.functional.mse_loss(model(batch), batch["dynamic_values"][:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            while time.monotonic() < begin + step * STEP_S:
                model(batch)
        if step % 80 == 0:
            print(f"step {step} of {len(loader)}: loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
