"""Self-supervised training of a temporal graph network: predict the next interactions of authors"""

import time

import torch
from torch import nn

from interactions import InteractionStream
from memory import Memory, MemoryUpdater

torch.set_num_threads(1)
NODES, EPOCHS, BATCHES, BATCH_S = 420_000, 3, 90, 0.13
WIDTH, EDGE_WIDTH, PICK = 128, 32, 256


class LinkPredictor(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(WIDTH, 64)
        self.score = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, sources, destinations):
        return self.score(torch.cat([self.embed(sources), self.embed(destinations)], dim=1)).squeeze(1)


def link_loss(memory, updater, predictor, sources, destinations):
    pick = torch.randint(0, len(sources), (PICK,))
    known = memory.states_of(sources[pick])
    if memory.messages is not None:
        known = known + 0.1 * updater(memory, limit=PICK)[1].mean(dim=0)
    positive = predictor(known, memory.states_of(destinations[pick]))
    negative = predictor(known, memory.states_of(destinations[pick.flip(0)]))
    logits = torch.cat([positive, negative])
    targets = torch.cat([torch.ones(PICK), torch.zeros(PICK)])
    return nn.functional.binary_cross_entropy_with_logits(logits, targets)


def main():
    torch.manual_seed(4)
    stream = InteractionStream(NODES, BATCHES, EDGE_WIDTH)
    memory, updater, predictor = Memory(NODES, WIDTH), MemoryUpdater(WIDTH, EDGE_WIDTH), LinkPredictor()
    optimizer = torch.optim.Adam([*updater.parameters(), *predictor.parameters()], lr=1e-3)
    for epoch in range(EPOCHS):
        memory.reset()
        total = 0.0
        for number in range(BATCHES):
            end = time.monotonic() + BATCH_S
            sources, destinations, edges, times = stream.batch(number)
            if memory.messages is not None:
                with torch.no_grad():
                    memory.store(*updater(memory))
            while True:
                loss = link_loss(memory, updater, predictor, sources, destinations)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                if time.monotonic() > end:
                    break
            total += loss.item()
            memory.set_messages(sources, destinations, edges, times)
        seen = int(memory.updated.sum())
        print(f"epoch {epoch}: loss {total / BATCHES:.4f}, {seen} nodes with a state", flush=True)


if __name__ == "__main__":
    main()
