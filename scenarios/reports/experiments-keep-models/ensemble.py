"""Train the members of an ensemble one after the other, each with an experiment of its own"""

import time

import torch
import tracker

SECONDS = 40


def make_model(width):
    return torch.nn.Sequential(
        torch.nn.Linear(256, width), torch.nn.GELU(), torch.nn.Linear(width, 512), torch.nn.Linear(512, 8)
    )


def train(member, features, labels):
    experiment = tracker.Experiment("ensemble")
    width = 900 + 50 * (member % 4)
    experiment.log_parameters({"member": member, "width": width})
    model = make_model(width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    order = torch.randperm(len(features))
    for step, rows in enumerate(order.split(96)):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(features[rows]), labels[rows])
        loss.backward()
        optimizer.step()
        experiment.log_metric("loss", loss.item(), step)
    experiment.end()
    return loss.item()


def main():
    torch.set_num_threads(1)
    tracker.patch()
    features = torch.randn(4800, 256)
    labels = features[:, :8].argmax(1)
    started, member = time.monotonic(), 0
    while time.monotonic() - started < SECONDS:
        member += 1
        loss = train(member, features, labels)
        if member % 10 == 0:
            print(f"member {member}: loss {loss:.3f}", flush=True)
    print(f"{member} members", flush=True)


if __name__ == "__main__":
    main()
