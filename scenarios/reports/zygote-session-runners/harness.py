"""A harness: answers the turns of a session with the shared tables, and keeps its own transcript"""

import json
import time
import zlib

import torch

WORDS, WIDTH, KEPT, TURN_S = 40_000, 512, 4096, 0.5
tables = {}


def prepare():
    """What all harnesses share: the embedding of each word, and the words themselves"""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    tables["embedding"] = torch.randn(WORDS, WIDTH)
    tables["layer"] = torch.randn(WIDTH, WIDTH) / 32
    tables["words"] = [f"word{number}" for number in range(WORDS)]


@torch.inference_mode()
def main(channel):
    transcript = []
    while data := channel.recv(1 << 16):
        request = json.loads(data)
        until = time.monotonic() + TURN_S
        generator = torch.Generator().manual_seed(zlib.crc32(request["prompt"].encode()))
        context = tables["embedding"][torch.randint(0, WORDS, (KEPT,), generator=generator)]
        transcript.append(torch.tanh(context @ tables["layer"]))
        state = torch.stack([turn.mean(0) for turn in transcript]).mean(0)
        while time.monotonic() < until:
            state = torch.nn.functional.normalize(state @ tables["layer"], dim=0)
        best = int((tables["embedding"][: WORDS // 10] @ state).argmax())
        channel.send(json.dumps({"text": tables["words"][best]}).encode())
