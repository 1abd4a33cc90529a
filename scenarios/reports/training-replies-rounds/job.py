"""The researcher: waits for its nodes, and runs the rounds of an experiment with them"""

import argparse
import socket
import time

from experiment import Experiment
from messages import Channel

SECONDS = 30.0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--announce", required=True)
    options = parser.parse_args()
    listener = socket.create_server(("127.0.0.1", 0))
    with open(options.announce, "w") as file:
        print(listener.getsockname()[1], file=file)
    nodes = {}
    while len(nodes) < options.nodes:
        channel = Channel(listener.accept()[0])
        hello = channel.receive()
        nodes[hello["name"]] = channel
    experiment = Experiment(nodes, hello["params"])
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        loss = experiment.run_once()
        print(f"round {experiment.round_current}: loss {loss:.4f}", flush=True)
    for channel in nodes.values():
        channel.send({"command": "stop"})
    best = min(experiment.info().items(), key=lambda item: max(loss for _, loss in item[1].values()))
    print(f"best round {best[0]} of {experiment.round_current}", flush=True)


if __name__ == "__main__":
    main()
