"""Random search: each process takes the next trial of the study, trains, and writes values and pickled states."""

import os
import sqlite3
import sys
import zlib

import torch

TRIALS = 40
BLOBS = 40


def connect(path):
    return sqlite3.connect(path, timeout=0.05, isolation_level=None)


def create(path):
    with connect(path) as study:
        study.execute("CREATE TABLE trials (number INTEGER PRIMARY KEY, rate REAL, width INTEGER, value REAL)")
        study.execute("CREATE TABLE states (number INTEGER, part INTEGER, state BLOB)")


def objective(rate, width):
    model = torch.nn.Sequential(torch.nn.Linear(64, width), torch.nn.ReLU(), torch.nn.Linear(width, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for _ in range(900):
        inputs = torch.randn(128, 64)
        loss = (model(inputs).squeeze(1) - inputs.sum(1).tanh()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def optimize(path, process):
    torch.manual_seed(process)
    torch.set_num_threads(1)
    study = connect(path)
    for _ in range(TRIALS):
        rate, width = 10 ** (torch.rand(1).item() * -3 - 1), 32 * int(torch.randint(1, 9, (1,)))
        number = study.execute("INSERT INTO trials (rate, width) VALUES (?, ?)", (rate, width)).lastrowid
        value = objective(rate, width)
        study.execute("BEGIN IMMEDIATE")
        for part in range(BLOBS):
            study.execute("INSERT INTO states VALUES (?, ?, ?)", (number, part, zlib.compress(os.urandom(200_000))))
        study.execute("UPDATE trials SET value = ? WHERE number = ?", (value, number))
        study.execute("DELETE FROM states WHERE number < ?", (number - 3,))
        best, width = study.execute("SELECT min(value), width FROM trials").fetchone()
        study.execute("COMMIT")
        if number % 10 == 0:
            print(
                f"process {process}: trial {number} has {value:.4f}, the best of width {width} {best:.4f}", flush=True
            )


if __name__ == "__main__":
    if sys.argv[2] == "create":
        create(sys.argv[1])
    else:
        optimize(sys.argv[1], int(sys.argv[3]))
