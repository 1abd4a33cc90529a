"""Evaluates a segmentation network, and logs its predictions as a table"""

import tempfile
import time

import torch
from torch import nn

from tracker import Image, Run, Table

torch.set_num_threads(1)
SECONDS, BATCH, SIDE, BATCH_S, CLASSES = 36.0, 16, 128, 0.16, 4
PALETTE = torch.tensor([[0, 0, 0], [220, 60, 40], [40, 190, 70], [60, 80, 230]], dtype=torch.uint8)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, 12, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(12, 24, 3, padding=1))
        self.up = nn.Sequential(nn.ReLU(), nn.ConvTranspose2d(24, CLASSES, 2, stride=2))

    def forward(self, images):
        return self.up(self.down(images))


def scenes(generator):
    """Batches of noisy pictures with blocks of some classes, and their masks"""
    while True:
        coarse = torch.randint(0, CLASSES, (BATCH, 1, 8, 8), generator=generator)
        masks = nn.functional.interpolate(coarse.float(), size=(SIDE, SIDE))[:, 0].long()
        images = PALETTE[masks].permute(0, 3, 1, 2).float() / 255.0
        yield images + 0.2 * torch.rand(images.shape, generator=generator), masks


def as_picture(image):
    return image.permute(1, 2, 0).clamp(0, 1).numpy()


@torch.inference_mode()
def evaluate(model, run):
    table = Table(["id", "image", "ground truth", "prediction", "dice"])
    started, seen, right = time.monotonic(), 0, 0.0
    for images, masks in scenes(torch.Generator().manual_seed(1)):
        until = time.monotonic() + BATCH_S
        while True:
            predicted = model(images).argmax(1)
            if time.monotonic() > until:
                break
        for image, mask, found in zip(images, masks, predicted):
            agreement = (found == mask).float().mean().item()
            table.add_data(
                seen,
                Image(as_picture(image), caption=f"scene {seen}"),
                Image(PALETTE[mask].numpy()),
                Image(PALETTE[found].numpy()),
                agreement,
            )
            seen += 1
            right += agreement
        if seen % (20 * BATCH) == 0:
            run.log({"agreement": right / seen})
            print(f"{seen} scenes, agreement {right / seen:.4f}", flush=True)
        if time.monotonic() - started > SECONDS:
            break
    run.log({"predictions": table, "agreement": right / seen})
    return seen


def main():
    torch.manual_seed(0)
    model = UNet().eval()
    with tempfile.TemporaryDirectory() as folder:
        run = Run(folder, "segmentation-baseline")
        seen = evaluate(model, run)
        print(f"{seen} scenes, {run.finish()} bytes logged", flush=True)


if __name__ == "__main__":
    main()
