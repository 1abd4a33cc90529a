"""The model's worker behind a socket: takes pictures as they are, resizes them, and classifies a batch at a time."""

import signal
import socket
import struct
import sys

import numpy as np
import torch


class Residual(torch.nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.path = torch.nn.Sequential(
            torch.nn.Conv2d(before, after, 3, stride, 1, bias=False),
            torch.nn.BatchNorm2d(after),
            torch.nn.ReLU(),
            torch.nn.Conv2d(after, after, 3, 1, 1, bias=False),
            torch.nn.BatchNorm2d(after),
        )
        self.skip = torch.nn.Conv2d(before, after, 1, stride, bias=False)

    def forward(self, x):
        return torch.relu(self.path(x) + self.skip(x))


def resnet():
    widths = [32, 64, 128, 256, 512]
    blocks = [Residual(a, b, 2) for a, b in zip(widths, widths[1:], strict=False)]
    pool = [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(widths[-1], 1000)]
    return torch.nn.Sequential(torch.nn.Conv2d(3, widths[0], 7, 2, 3), torch.nn.ReLU(), *blocks, *pool)


def receive(connection, size):
    parts = []
    while size:
        parts.append(connection.recv(min(size, 1 << 20)))
        if not parts[-1]:
            return None
        size -= len(parts[-1])
    return b"".join(parts)


def handle(model, connection):
    while (head := receive(connection, 12)) is not None:
        number, height, width = struct.unpack("3i", head)
        data = receive(connection, number * height * width * 3)
        images = torch.from_numpy(np.frombuffer(data, np.uint8).copy()).reshape(number, height, width, 3)
        images = images.permute(0, 3, 1, 2).float() / 255
        images = torch.nn.functional.interpolate(images, (224, 224), mode="bilinear")
        connection.sendall(struct.pack(f"{number}i", *model(images).argmax(1).tolist()))


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    torch.set_num_threads(1)
    model = resnet().eval()
    server = socket.socket(socket.AF_UNIX)
    server.bind(sys.argv[1])
    server.listen()
    with torch.no_grad():
        while True:
            connection, _ = server.accept()
            with connection:
                handle(model, connection)


if __name__ == "__main__":
    main()
