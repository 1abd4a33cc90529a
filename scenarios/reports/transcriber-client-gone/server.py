"""Transcribes audio that clients stream to it, one client after the other"""

import logging
import socket
import sys
import time

import numpy as np
import torch

torch.set_num_threads(1)
logger = logging.getLogger("server")
RATE, CHUNK, BUFFER_S, CHUNK_S = 16_000, 8_000, 15, 0.15


class OnlineASR:
    """Holds the last seconds of audio, and transcribes them anew with each chunk"""

    def __init__(self):
        torch.manual_seed(0)
        self.frames = torch.nn.Conv1d(1, 64, 400, stride=160)
        self.encoder = torch.nn.GRU(64, 128, batch_first=True)
        self.head = torch.nn.Linear(128, 30)
        self.audio = np.zeros(0, dtype=np.float32)
        self.offset = 0

    def init(self):
        self.audio, self.offset = np.zeros(0, dtype=np.float32), 0

    def insert_audio_chunk(self, audio):
        self.audio = np.append(self.audio, audio)
        over = len(self.audio) - BUFFER_S * RATE
        if over > 0:
            self.audio, self.offset = self.audio[over:].copy(), self.offset + over

    @torch.inference_mode()
    def process_iter(self):
        until, words = time.monotonic() + CHUNK_S, ""
        samples = torch.from_numpy(self.audio)[None, None]
        while time.monotonic() < until:
            hidden, _ = self.encoder(self.frames(samples).transpose(1, 2)[:, -100:])
            letters = self.head(hidden)[0].argmax(1)[::20].tolist()
            words = "".join(chr(97 + letter % 26) for letter in letters)
        return self.offset / RATE, (self.offset + len(self.audio)) / RATE, words


class Connection:
    def __init__(self, connection):
        self.connection = connection
        self.connection.setblocking(True)

    def send(self, line):
        self.connection.sendall(line.encode() + b"\n")

    def receive_audio(self, wanted):
        parts, received = [], 0
        while received < wanted:
            part = self.connection.recv(wanted - received)
            if not part:
                break
            parts.append(part)
            received += len(part)
        return b"".join(parts)


class ServerProcessor:
    def __init__(self, connection, online):
        self.connection, self.online = connection, online

    def process(self):
        self.online.init()
        while True:
            raw = self.connection.receive_audio(CHUNK * 2)
            if not raw:
                break
            self.online.insert_audio_chunk(np.frombuffer(raw[: len(raw) // 2 * 2], dtype=np.int16) / np.float32(32768))
            begin, end, words = self.online.process_iter()
            try:
                self.connection.send(f"{begin * 1000:.0f} {end * 1000:.0f} {words}")
            except BrokenPipeError:
                logger.info("broken pipe -- connection closed?")
                break


def main():
    logging.basicConfig(level=logging.INFO, format="%(levelname)s\t%(message)s")
    online = OnlineASR()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with open(sys.argv[1], "w") as file:
            print(listener.getsockname()[1], file=file)
        for _ in range(4):
            connection, address = listener.accept()
            logger.info("Connected to client on %s", address)
            with connection:
                ServerProcessor(Connection(connection), online).process()
            logger.info("Connection to client closed")


if __name__ == "__main__":
    main()
