"""Train a small detector, and evaluate it after each epoch"""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader

from coco import COCO, evaluate
from data import GRID, SIZE, TrainSet, ValidationSet

torch.set_num_threads(1)
EPOCHS, EPOCH_S, VALIDATION_IMAGES = 3, 20.0, 400


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        layers, width = [], 3
        for channels in (16, 32, 64, 64):
            layers += [nn.Conv2d(width, channels, 3, stride=2, padding=1), nn.BatchNorm2d(channels), nn.ReLU()]
            width = channels
        self.layers = nn.Sequential(*layers, nn.Conv2d(width, 5, 1))

    def forward(self, images):
        return self.layers(images).sigmoid()


def train_epoch(model, optimizer, loader):
    model.train()
    end, steps, total = time.monotonic() + EPOCH_S, 0, 0.0
    while time.monotonic() < end:
        for images, targets in loader:
            outputs = model(images)
            there = targets[:, :1]
            loss = nn.functional.binary_cross_entropy(outputs[:, :1], there)
            loss = loss + ((outputs[:, 1:] - targets[:, 1:]).pow(2) * there).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps, total = steps + 1, total + loss.item()
            if time.monotonic() > end:
                break
    return steps, total / steps


@torch.no_grad()
def validate(model, truth, loader):
    model.eval()
    results, cell = [], SIZE // GRID
    for images, numbers in loader:
        for output, number in zip(model(images), numbers.tolist()):
            for place in output[0].flatten().topk(40).indices.tolist():
                row, column = divmod(place, GRID)
                score, x, y, width, height = output[:, row, column].tolist()
                width, height = width * SIZE, height * SIZE
                box = ((column + x) * cell - width / 2, (row + y) * cell - height / 2, width, height)
                results.append({"image_id": number, "category_id": 1, "bbox": box, "score": score})
    print(f"  {len(results)} detections", flush=True)
    return evaluate(truth, truth.load_results(results))


def main():
    torch.manual_seed(2)
    train_set, validation_set = TrainSet(2000), ValidationSet(VALIDATION_IMAGES)
    loader = DataLoader(train_set, batch_size=16, shuffle=True, num_workers=1, persistent_workers=True)
    validation_loader = DataLoader(validation_set, batch_size=16)
    truth = COCO(validation_set.annotations())
    model = Detector()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    print(f"before training: {validate(model, truth, validation_loader):.4f}", flush=True)
    for epoch in range(EPOCHS):
        steps, loss = train_epoch(model, optimizer, loader)
        print(f"epoch {epoch}: {steps} steps, loss {loss:.4f}", flush=True)
        print(f"epoch {epoch}: {validate(model, truth, validation_loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
