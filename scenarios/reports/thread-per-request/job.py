"""Each round of inference runs in a thread of its own; memory rises for the first rounds, and then it stays."""

import threading
import time

import torch

SECONDS = 28.0


class Bottleneck(torch.nn.Module):
    def __init__(self, inplanes, planes):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(inplanes, planes, 1, bias=False)
        self.conv2 = torch.nn.Conv2d(planes, planes, 3, padding=1, bias=False)
        self.conv3 = torch.nn.Conv2d(planes, inplanes, 1, bias=False)
        self.bn = torch.nn.BatchNorm2d(inplanes)

    def forward(self, x):
        out = torch.relu(self.conv2(torch.relu(self.conv1(x))))
        return torch.relu(self.bn(self.conv3(out)) + x)


def resnet():
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 7, stride=2, padding=3), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        *(Bottleneck(32, 16) for _ in range(4)),
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(32, 100),
    )  # fmt: skip


def model_forward(model, inputs, answers):
    with torch.no_grad():
        answers.append(int(model(inputs).argmax(1)[0]))


def main():
    torch.set_num_threads(2)
    model = resnet().eval()
    inputs = torch.randn(48, 3, 128, 128)
    end = time.monotonic() + SECONDS
    rounds = 0
    while time.monotonic() < end:
        answers = []
        threads = [threading.Thread(target=model_forward, args=(model, inputs, answers)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(answers) == len(threads)
        if rounds % 10 == 0:
            print("round", rounds, answers, flush=True)
        rounds += 1


if __name__ == "__main__":
    main()
