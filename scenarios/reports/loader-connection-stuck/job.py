"""The loader's worker reads from a storage service that stops to answer; the loader's timeout ends the training."""

import socket
import threading

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

ANSWERS = 2_000
ITEM = 64 * 64 * 4


def storage(listener):
    """Answers so many requests; then it keeps the connections open and says nothing more."""
    answered = [0]
    connections = []

    def serve(connection):
        while connection.recv(8):
            if answered[0] < ANSWERS:
                answered[0] += 1
                connection.sendall(np.random.default_rng(answered[0]).bytes(ITEM))

    while True:
        connection, _ = listener.accept()
        connections.append(connection)
        threading.Thread(target=serve, args=(connection,), daemon=True).start()


class DataLakeDataset(Dataset):
    def __init__(self, address, length):
        self.address = address
        self.length = length
        self.connection = None

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if self.connection is None:
            self.connection = socket.create_connection(self.address)
        self.connection.sendall(int(index).to_bytes(8, "big"))
        data = b""
        while len(data) < ITEM:
            data += self.connection.recv(ITEM - len(data))
        image = np.frombuffer(data, np.uint8).reshape(4, 64, 64)
        return torch.from_numpy(image.astype(np.float32) / 255), index % 10


def main():
    torch.set_num_threads(1)
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=storage, args=(listener,), daemon=True).start()
    dataset = DataLakeDataset(listener.getsockname(), length=64_000)
    loader = DataLoader(dataset, batch_size=16, shuffle=True, num_workers=2, timeout=9)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(4, 32, 3), torch.nn.ReLU(), torch.nn.Conv2d(32, 32, 3), torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(32, 10),
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(10):
        for step, (images, target) in enumerate(loader):
            loss = torch.nn.functional.cross_entropy(model(images), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 20 == 0:
                print(epoch, step, loss.item(), flush=True)


if __name__ == "__main__":
    main()
