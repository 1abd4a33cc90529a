"""Train an embedding of product images with a contrastive loss over a cross batch memory"""

import argparse
import time

import torch
from torch import nn

from cross_batch_memory import ContrastiveLoss, CrossBatchMemory

torch.set_num_threads(1)
CLASSES, STEPS, STEP_S = 6000, 240, 0.15


class Trunk(nn.Module):
    def __init__(self, embedding_size):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 16, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(16 * 6 * 6, embedding_size),
        )

    def forward(self, images):
        return nn.functional.normalize(self.layers(images))


def draw_batch(prototypes, size, generator):
    labels = torch.randint(0, CLASSES, (size // 4,), generator=generator).repeat_interleave(4)
    coarse = prototypes[labels].view(size, 3, 6, 6)
    images = nn.functional.interpolate(coarse, size=(24, 24), mode="bilinear")
    return images + 0.1 * torch.randn(images.shape, generator=generator), labels


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--memory_size", type=int, required=True)
    parser.add_argument("--embedding_size", type=int, required=True)
    parser.add_argument("--batch_size", type=int, required=True)
    arguments = parser.parse_args()
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(2)
    prototypes = torch.randn(CLASSES, 3 * 6 * 6, generator=generator)
    model = Trunk(arguments.embedding_size)
    loss_function = CrossBatchMemory(ContrastiveLoss(), arguments.embedding_size, arguments.memory_size)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for step in range(STEPS):
        end, total, rounds = time.monotonic() + STEP_S, 0.0, 0
        images, labels = draw_batch(prototypes, arguments.batch_size, generator)
        embeddings = model(images)
        loss = loss_function(embeddings, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        while time.monotonic() < end:
            part = torch.randint(0, arguments.batch_size, (64,), generator=generator)
            refined = loss_function.compare(model(images[part]), labels[part], 200)
            optimizer.zero_grad()
            refined.backward()
            optimizer.step()
            total, rounds = total + refined.item(), rounds + 1
        if step % 20 == 0:
            refined = total / max(1, rounds)
            print(f"step {step}: loss {loss.item():.4f}, refined {refined:.4f}", flush=True)


if __name__ == "__main__":
    main()
