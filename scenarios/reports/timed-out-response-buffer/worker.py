"""The inference worker: a depth map for each request"""

import time

import torch
from torch import nn

SMALL_S, LARGE_S = 0.05, 0.18


class DepthAPI:
    def setup(self):
        torch.manual_seed(0)
        first, second = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, 2, 1)
        self.net = nn.Sequential(first, nn.GELU(), second, nn.GELU(), nn.Conv2d(8, 1, 1))

    @torch.inference_mode()
    def predict(self, request):
        size = request["size"]
        generator = torch.Generator().manual_seed(request["image"])
        image = torch.rand(1, 3, 256, 256, generator=generator)
        until, passes = time.monotonic() + (LARGE_S if size > 512 else SMALL_S), 0
        depth = self.net(image)
        # Passes over shifted copies of the image, whose mean is the map.
        while passes == 0 or time.monotonic() < until:
            depth = depth + self.net(image.roll(passes, 3))
            passes += 1
        depth = nn.functional.interpolate(depth / (passes + 1), (size, size), mode="bilinear")
        return depth[0, 0]

    def encode_response(self, depth):
        return depth.numpy().tobytes()


def inference_worker(connection):
    torch.set_num_threads(1)
    api = DepthAPI()
    api.setup()
    connection.send("started")
    while (item := connection.recv()) is not None:
        uid, request = item
        connection.send((uid, api.encode_response(api.predict(request))))
    connection.close()
