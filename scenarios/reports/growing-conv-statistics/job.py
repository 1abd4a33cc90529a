"""Trains a small convolutional network, then looks over the data set for where it should grow"""

import time

import torch
from growing import Conv2dGrowingModule, LinearGrowingModule
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
SAMPLES, BATCH, SIDE, CLASSES = 16_000, 40, 20, 10
TRAIN_S, BATCH_S = 4.0, 0.045


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.growing = nn.ModuleList(
            [
                Conv2dGrowingModule(3, 12, 3, nn.ReLU()),
                Conv2dGrowingModule(12, 16, 3, nn.ReLU()),
                LinearGrowingModule(16 * (SIDE // 4) ** 2, 64, nn.ReLU()),
            ]
        )
        self.head = nn.Linear(64, CLASSES)

    def forward(self, images):
        hidden = self.growing[1](self.growing[0](images)).flatten(1)
        return self.head(self.growing[2](hidden))


def make_data():
    generator = torch.Generator().manual_seed(1)
    targets = torch.randint(0, CLASSES, (SAMPLES,), generator=generator)
    centres = torch.rand(CLASSES, 3, SIDE, SIDE, generator=generator)
    images = torch.rand(SAMPLES, 3, SIDE, SIDE, generator=generator)
    return TensorDataset(images.add_(centres[targets], alpha=0.3), targets)


def train(net, loader):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    end = time.monotonic() + TRAIN_S
    for step, (images, targets) in enumerate(loader, 1):
        loss = nn.functional.cross_entropy(net(images), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"train: step {step}, loss {loss.item():.3f}", flush=True)
        if time.monotonic() > end:
            return


def sharpness(net, images, targets, until):
    """How much the loss changes under small noise on the weights; as many draws as there is time for"""
    found = []
    with torch.no_grad():
        while not found or time.monotonic() < until:
            noise = 0.01 * torch.randn_like(net.head.weight)
            net.head.weight.add_(noise)
            features = images.mean((2, 3)) @ torch.ones(3, 64)
            found.append(nn.functional.cross_entropy(net.head(features), targets).item())
            net.head.weight.sub_(noise)
    return sum(found) / len(found)


def compute_statistics(net, loader):
    for module in net.growing:
        module.init_computation()
    begin, total = time.monotonic(), 0.0
    for done, (images, targets) in enumerate(loader, 1):
        net.zero_grad()
        loss = nn.functional.cross_entropy(net(images), targets, reduction="sum")
        loss.backward()
        for module in net.growing:
            module.update_computation()
        total += loss.item()
        noisy = sharpness(net, images, targets, begin + done * BATCH_S)
        if done % 50 == 0:
            print(f"statistics: batch {done}, loss {total / done / BATCH:.3f}, noisy head {noisy:.3f}", flush=True)


def main():
    torch.manual_seed(0)
    data = make_data()
    net = Net()
    train(net, DataLoader(data, batch_size=BATCH, shuffle=True))
    compute_statistics(net, DataLoader(data, batch_size=BATCH))
    for number, module in enumerate(net.growing):
        delta, gain = module.compute_optimal_delta()
        print(f"layer {number}: expected gain {gain:.4f}, update {delta.norm().item():.3f}", flush=True)
        module.reset_computation()


if __name__ == "__main__":
    main()
