"""A training logs per-channel statistics with add_scalars, and the summary writer keeps all of them in memory."""

import os
import queue
import struct
import tempfile
import threading
import time

import torch

STEPS = 420


class EventFileWriter:
    def __init__(self, folder):
        self.events = queue.Queue(20)
        self.path = os.path.join(folder, "events.out.tfevents")
        self.thread = threading.Thread(target=self.write, name="event-writer", daemon=True)
        self.thread.start()

    def write(self):
        with open(self.path, "wb") as file:
            while (event := self.events.get()) is not None:
                file.write(event)

    def close(self):
        self.events.put(None)
        self.thread.join()


class SummaryWriter:
    def __init__(self, logdir):
        self.file_writer = EventFileWriter(logdir)
        self.scalar_dict = {}

    def add_scalars(self, main_tag, tag_scalar_dict, global_step):
        now = time.time()
        record = bytearray()
        for tag, value in tag_scalar_dict.items():
            record += struct.pack("<dqf", now, global_step, value)
            self.__append_to_scalar_dict(f"{main_tag}/{tag}", value, global_step, now)
        self.file_writer.events.put(bytes(record))

    def __append_to_scalar_dict(self, tag, value, global_step, timestamp):
        if tag not in self.scalar_dict:
            self.scalar_dict[tag] = []
        self.scalar_dict[tag].append([timestamp, global_step, float(value)])

    def close(self):
        self.file_writer.close()


def statistics(weight):
    for name, values in (("mean", weight.flatten(1).mean(1)), ("norm", weight.flatten(1).norm(dim=1))):
        yield from ((f"{name}_{channel}", value) for channel, value in enumerate(values.tolist()))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(256, 768), torch.nn.ReLU(), torch.nn.Linear(768, 768), torch.nn.ReLU())
    model.append(torch.nn.Linear(768, 10))
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    with tempfile.TemporaryDirectory() as logdir:
        writer = SummaryWriter(logdir)
        for step in range(STEPS):
            inputs = torch.randn(512, 256)
            loss = torch.nn.functional.cross_entropy(model(inputs), inputs[:, :10].argmax(1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            for number in (0, 2, 4):
                writer.add_scalars(f"weight{number}", dict(statistics(model[number].weight.detach())), step)
                writer.add_scalars(f"grad{number}", dict(statistics(model[number].weight.grad)), step)
            if step % 40 == 0:
                print(f"step {step}: loss {loss.item():.3f}", flush=True)
        writer.close()


if __name__ == "__main__":
    main()
