"""Streaming recognition: threads and decoders for the sessions, which are used again"""

import json
import socket
import struct
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

torch.set_num_threads(1)
FRAMES, FEATURES, WIDTH = 2000, 80, 1024


class DecodeResource:
    """The networks, which all sessions share"""

    def __init__(self):
        torch.manual_seed(0)
        self.encoder = torch.nn.GRU(FEATURES, 192).eval()
        self.ctc = torch.nn.Linear(192, 400).eval()
        self.project = torch.nn.Linear(192, WIDTH).eval()


class AsrDecoder:
    """The feature pipeline, the caches and the hypotheses of one session"""

    def __init__(self, resource):
        self.resource = resource
        self.cache = np.ones((FRAMES, WIDTH), dtype=np.float32)
        self.reset()

    def reset(self):
        self.frames, self.hidden, self.tokens = 0, None, []

    @torch.inference_mode()
    def accept(self, waveform):
        frames = waveform.reshape(-1, FEATURES)
        encoded, self.hidden = self.resource.encoder(torch.from_numpy(frames).unsqueeze(1), self.hidden)
        end = self.frames + len(frames)
        self.cache[self.frames : end] = self.resource.project(encoded[:, 0]).numpy()
        context = self.cache[max(0, end - 600) : end].mean(0)
        best = self.resource.ctc(encoded[:, 0]).argmax(1).tolist()
        self.tokens += [token for token, before in zip(best, [None, *best]) if token != before]
        self.frames = end
        return float(context.std())


class DecoderPool:
    def __init__(self):
        self.resource = DecodeResource()
        self.lock = threading.Lock()
        self.idle, self.made = [], 0

    def take(self):
        with self.lock:
            if self.idle:
                return self.idle.pop()
            self.made += 1
        return AsrDecoder(self.resource)

    def give(self, decoder):
        decoder.reset()
        with self.lock:
            self.idle.append(decoder)


def session(connection, pool):
    with connection, connection.makefile("rb") as source:
        decoder = pool.take()
        try:
            while len(head := source.read(4)) == 4:
                (size,) = struct.unpack("<I", head)
                if size == 0:
                    break
                waveform = np.frombuffer(bytearray(source.read(size)), dtype=np.float32)
                level = decoder.accept(waveform)
                partial = {"tokens": len(decoder.tokens), "level": level}
                connection.sendall(json.dumps(partial).encode() + b"\n")
        finally:
            pool.give(decoder)


def main():
    pool = DecoderPool()
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    print(listener.getsockname()[1], flush=True)
    threads = ThreadPoolExecutor(max_workers=20, thread_name_prefix="session")
    number = 0
    while True:
        connection, _ = listener.accept()
        first = connection.recv(1)
        if first != b"s":
            connection.close()
            break
        number += 1
        threads.submit(session, connection, pool)
    threads.shutdown()
    print(f"{number} sessions, {pool.made} decoders", flush=True)


if __name__ == "__main__":
    main()
