"""An autoencoder of camera images, with its inputs and outputs as debug samples"""

import time

import torch
from torch import nn
from tracker import Task

SECONDS, SIDE = 27.0, 128


def make_images(count=96):
    generator = torch.Generator().manual_seed(8)
    coarse = torch.rand(count, 3, 8, 8, generator=generator)
    return nn.functional.interpolate(coarse, (SIDE, SIDE), mode="bilinear", align_corners=False)


def main():
    torch.set_num_threads(1)
    images = make_images()
    model = nn.Sequential(
        nn.Conv2d(3, 24, 4, stride=2, padding=1), nn.ReLU(), nn.Conv2d(24, 48, 4, stride=2, padding=1), nn.ReLU(),
        nn.ConvTranspose2d(48, 24, 4, stride=2, padding=1), nn.ReLU(),
        nn.ConvTranspose2d(24, 3, 4, stride=2, padding=1), nn.Sigmoid(),
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    task = Task(project="station", name="autoencoder")
    started, step = time.monotonic(), 0
    while time.monotonic() - started < SECONDS:
        batch = images[torch.randint(0, len(images), (8,))]
        output = model(batch)
        loss = nn.functional.mse_loss(output, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        task.report_scalar("loss", loss.item(), step)
        task.report_image("samples", torch.cat([batch[0], output[0].detach()], 2).numpy(), step)
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
    task.close()


if __name__ == "__main__":
    main()
