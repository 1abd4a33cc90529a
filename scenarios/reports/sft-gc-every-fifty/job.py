"""Fine-tunes, with the collector of garbage under the trainer's own control"""

import time

import torch

from sft import VOCAB, Blocks, MicroBatch
from utils import GarbageCollection

torch.set_num_threads(1)
STEPS, STEP_S, FREQ = 620, 0.055, 50
BATCH, LENGTH = 6, 97


def train_step(model, optimizer, generator):
    first = torch.randint(0, VOCAB, (BATCH, 1), generator=generator)
    ids = (first + torch.arange(LENGTH) * 7) % VOCAB
    loss = MicroBatch(ids).run(model)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.item()


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    model = Blocks()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    probe = torch.randint(0, VOCAB, (1, LENGTH), generator=generator)
    handler = GarbageCollection(FREQ)
    for step in range(1, STEPS + 1):
        until = time.monotonic() + STEP_S
        loss = train_step(model, optimizer, generator)
        handler.run(step)
        with torch.no_grad():
            while time.monotonic() < until:
                model(probe)
        if step % 50 == 0:
            print(f"step {step}: loss {loss:.4f}", flush=True)


if __name__ == "__main__":
    main()
