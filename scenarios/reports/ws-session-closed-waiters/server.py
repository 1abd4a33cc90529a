"""Sends the features of a vibration sensor's windows to the client that connects"""

import argparse
import socket
import sys
import time

import numpy as np
from session import BINARY, CLOSE, Stream

WINDOW_S, SECONDS, SAMPLES = 0.068, 70, 4096


def features(generator, window):
    """The mean spectrum of what was sampled while the window lasted"""
    until, spectra, times = time.monotonic() + WINDOW_S, np.zeros(SAMPLES // 2 + 1), np.arange(SAMPLES)
    count = 0
    while time.monotonic() < until:
        signal = np.sin(times * (0.05 + window % 50 / 1000)) + generator.normal(0, 0.3, SAMPLES)
        spectra += np.abs(np.fft.rfft(signal))
        count += 1
    return (spectra / count).astype(np.float32)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port-file", required=True)
    with socket.create_server(("127.0.0.1", 0)) as server:
        with open(parser.parse_args().port_file, "w") as file:
            file.write(str(server.getsockname()[1]))
        connection, _ = server.accept()
    stream, generator, window = Stream(connection), np.random.default_rng(0), 0
    until = time.monotonic() + SECONDS
    try:
        while time.monotonic() < until:
            stream.write_frame(BINARY, features(generator, window).tobytes())
            window += 1
        stream.write_frame(CLOSE, b"")
    except OSError:
        pass
    print(f"{window} windows sent", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
