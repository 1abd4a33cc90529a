"""Acquisition with a changing region of interest: the camera writes frames into buffers that the controller reads"""

import multiprocessing
import time
from multiprocessing import resource_tracker

import numpy as np
import torch
from shared import SharedNDArray

SECONDS, FRAMES = 27.0, 20
REGIONS = [(512, 512), (768, 768), (1024, 1024), (640, 640), (320, 320), (1024, 768)]
FRAMES_PER_REGION = 60


def run_camera(connection):
    """Commands: ("roi", names, shape), ("snap", index) and ("stop",)"""
    torch.set_num_threads(1)
    generator = np.random.default_rng(2)
    buffers = []
    while True:
        command, *arguments = connection.recv()
        if command == "snap":
            frame = buffers[arguments[0]].array
            spots = generator.poisson(40, (frame.shape[0] // 4, frame.shape[1] // 4)).astype(np.float32)
            sample = torch.from_numpy(spots)[None, None]
            blurred = torch.nn.functional.interpolate(sample, frame.shape, mode="bicubic", align_corners=False)
            frame[...] = (blurred[0, 0].clamp(0, 250) * 200).numpy().astype(np.uint16)
            connection.send(("frame", arguments[0]))
            continue
        frame = None
        for buffer in buffers:
            buffer.close()
        buffers = []
        if command == "stop":
            break
        names, shape = arguments
        buffers = [SharedNDArray(shape, np.uint16, name) for name in names]
        connection.send(("ready", shape))


class Controller:
    def __init__(self):
        resource_tracker.ensure_running()
        self.connection, other = multiprocessing.Pipe()
        self.camera = multiprocessing.Process(target=run_camera, args=(other,), name="camera")
        self.camera.start()
        other.close()
        self.buffers = self.make_buffers(REGIONS[0])
        self.announce()
        self.focus = []

    def make_buffers(self, shape):
        return [SharedNDArray(shape, np.uint16) for _ in range(FRAMES)]

    def announce(self):
        self.connection.send(("roi", [buffer.name for buffer in self.buffers], self.buffers[0].shape))
        self.connection.recv()

    def change_region(self, shape):
        for buffer in self.buffers:
            buffer.close()
            buffer.unlink()
        self.buffers = self.make_buffers(shape)
        self.announce()

    def measure(self, index):
        image = torch.from_numpy(self.buffers[index].array.astype(np.float32))[None, None]
        kernel = torch.tensor([[0.0, 1, 0], [1, -4, 1], [0, 1, 0]])[None, None]
        return float(torch.nn.functional.conv2d(image, kernel).var())

    def acquire(self, count):
        best = 0.0
        for number in range(count):
            self.connection.send(("snap", number % FRAMES))
            _, index = self.connection.recv()
            best = max(best, self.measure(index))
        self.focus = [*self.focus[-9:], best]

    def stop(self):
        self.connection.send(("stop",))
        self.camera.join()
        for buffer in self.buffers:
            buffer.close()
            buffer.unlink()


def main():
    torch.set_num_threads(1)
    controller = Controller()
    started, number = time.monotonic(), 0
    while time.monotonic() - started < SECONDS:
        controller.acquire(FRAMES_PER_REGION)
        number += 1
        shape = REGIONS[number % len(REGIONS)]
        print(f"region {number}: focus {controller.focus[-1]:.0f}, next {shape}", flush=True)
        controller.change_region(shape)
    controller.stop()


if __name__ == "__main__":
    main()
