"""Trains a small convolution net, and logs images of its feature maps for two runs, train and eval"""

import argparse
import os
import time

import torch

from events import Writer

SECONDS, STEP_S = 37.0, 0.1
SIDE, CHANNELS, BATCH, ZOOM = 64, 30, 8, 4
IMAGES_PER_STEP = 6


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.features = torch.nn.Conv2d(3, CHANNELS, 5, padding=2)
        self.head = torch.nn.Linear(CHANNELS, 4)

    def forward(self, images):
        maps = torch.relu(self.features(images))
        return self.head(maps.mean((2, 3))), maps


def picture(maps, channel):
    """A map of the first image in false colours, as bytes"""
    one = maps[0, channel]
    one = (one - one.min()) / (one.max() - one.min() + 1e-6)
    coloured = torch.stack([one, one.square(), 1.0 - one])[None]
    large = torch.nn.functional.interpolate(coloured, scale_factor=ZOOM, mode="bilinear")
    return (255.0 * large[0]).byte().numpy().tobytes()


def make_batch(generator):
    labels = torch.randint(0, 4, (BATCH,), generator=generator)
    images = torch.randn(BATCH, 3, SIDE, SIDE, generator=generator)
    ramp = torch.linspace(-1.0, 1.0, SIDE)
    images += labels[:, None, None, None] * ramp[:, None] * ramp
    return images, labels


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--logdir", required=True)
    logdir = parser.parse_args().logdir
    torch.manual_seed(0)
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    writers = {name: Writer(os.path.join(logdir, name)) for name in ("train", "eval")}
    started, step, logged = time.monotonic(), 0, 0
    while time.monotonic() - started < SECONDS:
        until = time.monotonic() + STEP_S
        while True:
            images, labels = make_batch(generator)
            scores, maps = model(images)
            loss = torch.nn.functional.cross_entropy(scores, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if time.monotonic() > until:
                break
        with torch.no_grad():
            held_out, answers = make_batch(generator)
            scores, held_out_maps = model(held_out)
            accuracy = (scores.argmax(1) == answers).float().mean().item()
            for _ in range(IMAGES_PER_STEP // 2):
                channel = logged % CHANNELS
                writers["train"].add("images", f"features/{channel}", step, picture(maps, channel))
                writers["eval"].add("images", f"features/{channel}", step, picture(held_out_maps, channel))
                logged += 1
        writers["train"].add("scalars", "loss", step, loss.item())
        writers["eval"].add("scalars", "accuracy", step, accuracy)
        for writer in writers.values():
            writer.flush()
        step += 1
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}, accuracy {accuracy:.2f}", flush=True)
    print(f"{step} steps, {2 * logged} images", flush=True)


if __name__ == "__main__":
    main()
