"""The actors of a reinforcement learning run: a trainer and a reference model, each a process of its own"""

import gc
import sys
import time
from multiprocessing.connection import Client

import torch
from torch import nn

torch.set_num_threads(1)
VOCAB, WIDTH, LAYERS = 700, 96, 2


class GarbageCollection:
    """Collects in step on all actors, instead of whenever Python likes."""

    def __init__(self, gc_freq=1000):
        self.gc_freq = gc_freq
        gc.disable()
        self.collect()

    def run(self, step_count):
        if step_count > 1 and step_count % self.gc_freq == 0:
            self.collect()

    @staticmethod
    def collect(generation=1):
        gc.collect(generation)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCAB, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, VOCAB)

    def forward(self, ids):
        return self.head(self.layers(self.tokens(ids)))


class Pass:
    """One pass through the model, with what its stages want to be told at its end."""

    def __init__(self, model, ids):
        self.model, self.ids = model, ids
        self.logits = self.logprobs = None
        self.listeners = [self.finish]

    def forward(self):
        self.logits = self.model(self.ids)
        self.logprobs = self.logits.log_softmax(-1)
        return self.logprobs.gather(-1, self.ids[..., None]).squeeze(-1)

    def finish(self):
        return float(self.logprobs.detach().mean())

    def end(self):
        return [listener() for listener in self.listeners]


class RLTrainer:
    def __init__(self, gc_freq):
        self.model = Decoder()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.gc_handler, self.step = GarbageCollection(gc_freq), 0

    def call(self, batch, seconds):
        until = time.monotonic() + seconds
        ids = torch.tensor(batch["ids"])
        advantages = torch.tensor(batch["advantages"])[:, None]
        turn = Pass(self.model, ids)
        loss = -(turn.forward() * advantages).mean()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        turn.end()
        self.step += 1
        self.gc_handler.run(self.step)
        # The rest of the time for a step goes to the statistics of the new policy.
        with torch.no_grad():
            while time.monotonic() < until:
                self.model(ids[:1])
        return {"step": self.step, "loss": float(loss.detach())}


class ReferenceModel:
    def __init__(self, gc_freq):
        self.model = Decoder().eval()
        self.gc_handler, self.step = GarbageCollection(gc_freq), 0

    @torch.no_grad()
    def call(self, batch, seconds):
        until = time.monotonic() + seconds
        ids = torch.tensor(batch["ids"])
        turn = Pass(self.model, ids)
        logprobs = turn.forward()
        turn.end()
        self.step += 1
        self.gc_handler.run(self.step)
        while time.monotonic() < until:
            self.model(ids[:1])
        return {"step": self.step, "logprob": float(logprobs.mean())}


def main():
    kind, address, gc_freq = sys.argv[1:]
    torch.manual_seed(0)
    actor = {"trainer": RLTrainer, "reference": ReferenceModel}[kind](int(gc_freq))
    with Client(address, family="AF_UNIX") as connection:
        connection.send(kind)
        while (message := connection.recv()) is not None:
            connection.send(actor.call(*message))


if __name__ == "__main__":
    main()
