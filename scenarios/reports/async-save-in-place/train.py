"""Trains an autoencoder, saves checkpoints in the background, and evaluates the last one"""

import tempfile
import time

import torch

from checkpointing import AsyncCheckpointer

torch.set_num_threads(1)
WIDTH, HIDDEN = 512, 2048
RUN_S, SAVE_EVERY = 24.0, 60


def model():
    return torch.nn.Sequential(
        torch.nn.Linear(WIDTH, HIDDEN),
        torch.nn.GELU(),
        torch.nn.Linear(HIDDEN, HIDDEN),
        torch.nn.GELU(),
        torch.nn.Linear(HIDDEN, WIDTH),
    )


def batch(generator):
    base = torch.randn(8, 16, generator=generator)
    return torch.cat([base * (1 + part / 32) for part in range(WIDTH // 16)], 1).sin()


def state_of(net, optimizer):
    moments = {str(key): dict(value) for key, value in optimizer.state_dict()["state"].items()}
    return {"model": dict(net.state_dict()), "optim": moments}


def train(net, checkpointer, generator):
    optimizer = torch.optim.AdamW(net.parameters(), 3e-4)
    end, step = time.monotonic() + RUN_S, 0
    while True:
        inputs = batch(generator)
        loss = torch.nn.functional.mse_loss(net(inputs), inputs)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % SAVE_EVERY == 0:
            checkpointer.async_save(state_of(net, optimizer), step)
            print(f"step {step}: loss {loss.item():.5f}, saving", flush=True)
        if step % SAVE_EVERY == SAVE_EVERY // 2 and time.monotonic() > end:
            return


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    net = model()
    with tempfile.TemporaryDirectory() as folder:
        checkpointer = AsyncCheckpointer(folder)
        train(net, checkpointer, generator)
        tensors = checkpointer.load()
        net.load_state_dict({name[6:]: tensor for name, tensor in tensors.items() if name.startswith("model.")})
        with torch.no_grad():
            inputs = batch(generator)
            print(f"evaluation: {torch.nn.functional.mse_loss(net(inputs), inputs):.5f}", flush=True)


if __name__ == "__main__":
    main()
