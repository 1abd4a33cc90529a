"""Pretrains with two ranks; each saves its shard of the state every few steps, asynchronously."""

import os
import tempfile
import time

import torch
import torch.distributed as dist
from staging import StagingProcess
from torch import nn

SECONDS, SAVE_EVERY = 30.0, 12
VOCABULARY = 9000


class Decoder(nn.Module):
    def __init__(self, width=256, layers=3):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True, dropout=0.0)
        self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, ids):
        return self.head(self.body(self.embedding(ids)))


def shard(model, optimizer, rank, world):
    """Every second parameter, and its momentum."""
    state = {}
    for number, (name, parameter) in enumerate(model.named_parameters()):
        if number % world == rank:
            state[name] = parameter.detach()
            state[f"{name}.momentum"] = optimizer.state[parameter]["momentum_buffer"]
    return state


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = Decoder()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    torch.manual_seed(rank)
    with tempfile.TemporaryDirectory() as folder:
        staging = StagingProcess(folder, f"staged-{os.environ['MASTER_PORT']}-{rank}")
        over, step, end = torch.zeros(1), 0, time.monotonic() + SECONDS
        try:
            while over[0] == 0:
                ids = torch.randint(0, VOCABULARY, (2, 49))
                logits = model(ids[:, :-1])
                loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
                optimizer.zero_grad()
                loss.backward()
                for parameter in model.parameters():
                    dist.all_reduce(parameter.grad)
                optimizer.step()
                step += 1
                if step % SAVE_EVERY == 0:
                    staging.save(step, shard(model, optimizer, rank, world))
                    if rank == 0:
                        print(f"step {step} loss {loss.item():.3f}", flush=True)
                over[0] = time.monotonic() > end
                dist.all_reduce(over)
        finally:
            staging.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
