"""A worker: computes the blocks of the batches that its scheduler sends"""

import json
import os
import socket
import sys
import threading
import time

import torch

torch.set_num_threads(1)
path, waited = sys.argv[1], threading.Event()
while not os.path.exists(path):
    waited.wait(0.1)
with open(path) as file:
    port = json.load(file)["port"]
kernel = torch.ones(1, 1, 3, 3, 3) / 27
block = torch.rand(1, 1, 24, 24, 24, generator=torch.Generator().manual_seed(os.getpid() % 100))
with socket.create_connection(("127.0.0.1", port)) as connection:
    stream = connection.makefile("rw")
    finished = []
    while True:
        stream.write(json.dumps({"finished": finished}) + "\n")
        stream.flush()
        message = json.loads(stream.readline())
        if message["op"] == "close":
            break
        for _ in message["keys"]:
            started = time.monotonic()
            while time.monotonic() - started < 0.003:
                smoothed = torch.nn.functional.conv3d(block, kernel, padding=1)
                block = smoothed + 0.01 * torch.rand_like(block)
        finished = message["keys"]
