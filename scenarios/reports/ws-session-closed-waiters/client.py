"""Scores the windows of a sensor as they come, by how well an autoencoder that learns from them restores them"""

import argparse

import torch
from session import WebSocketDisconnect, connect_ws
from torch import nn


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port-file", required=True)
    with open(parser.parse_args().port_file) as file:
        port = int(file.read())
    torch.set_num_threads(1)
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(2049, 256), nn.ReLU(), nn.Linear(256, 32), nn.ReLU(), nn.Linear(32, 2049))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    windows = 0
    with connect_ws(port) as ws:
        while True:
            try:
                data = ws.receive_bytes(timeout=5)
            except WebSocketDisconnect:
                break
            spectrum = torch.frombuffer(bytearray(data), dtype=torch.float32)
            spectrum = (spectrum / spectrum.max())[None]
            loss = nn.functional.mse_loss(network(spectrum), spectrum)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            windows += 1
            if windows % 25 == 0:
                print(f"window {windows}: score {loss.item():.5f}", flush=True)
    print(f"the sensor hung up after {windows} windows", flush=True)


if __name__ == "__main__":
    main()
