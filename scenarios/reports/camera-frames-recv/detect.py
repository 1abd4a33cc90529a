"""Receives the frames of a camera, and looks for objects in each"""

import asyncio
import os
import sys
import time

import torch

import ws

torch.set_num_threads(1)
RUN_S, SIDE, DETECT_S = 30.0, 336, 0.045
HERE = os.path.dirname(os.path.abspath(__file__))


class Detector(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(1, 8, 5, stride=4), torch.nn.ReLU(), torch.nn.Conv2d(8, 6, 5, stride=4)
        )

    @torch.inference_mode()
    def detect(self, data):
        until = time.monotonic() + DETECT_S
        pixels = torch.frombuffer(bytearray(data), dtype=torch.uint8).reshape(1, 1, SIDE, SIDE).float() / 255
        while True:
            scores = self.layers(pixels).amax((2, 3))[0]
            if time.monotonic() > until:
                return scores.tolist()


async def main():
    torch.manual_seed(0)
    detector, loop = Detector().eval(), asyncio.get_running_loop()
    camera = await asyncio.create_subprocess_exec(
        sys.executable, os.path.join(HERE, "camera.py"), stdout=asyncio.subprocess.PIPE
    )
    connection = await ws.connect(int(await camera.stdout.readline()))
    end, last, seen = time.monotonic() + RUN_S, -1, 0
    while time.monotonic() < end:
        message = await connection.recv()
        number = int(message[:8])
        if number != last + 1:
            raise ValueError(f"missed a frame between {last} and {number}")
        last = number
        scores = await loop.run_in_executor(None, detector.detect, message[8:])
        seen += 1
        if seen % 100 == 0:
            print(f"frame {number}: best class {max(range(6), key=scores.__getitem__)}", flush=True)
    await connection.close()
    await camera.wait()


if __name__ == "__main__":
    asyncio.run(main())
