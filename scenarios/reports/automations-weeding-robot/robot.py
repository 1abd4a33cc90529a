"""A weeding robot drives along the rows of a field; each row is an automation of its own"""

import asyncio
import gc
import time
import zlib

import numpy as np
import torch
from torch import nn

SECONDS = 27.0
HEIGHT, WIDTH, CELLS = 300, 400, 300
MIN_FREE = 300 << 20


def available_memory():
    with open("/proc/meminfo") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    return MIN_FREE


class Camera:
    """Images of a recorded field, as the driver gives them"""

    def __init__(self, images=12):
        generator = np.random.default_rng(4)
        self.images = []
        for number in range(images):
            ground = np.linspace(40, 120, HEIGHT * WIDTH * 3).reshape(HEIGHT, WIDTH, 3)
            noise = generator.integers(0, 24, ground.shape)
            self.images.append(zlib.compress((ground + noise + number).astype(np.uint8).tobytes(), 1))

    def capture(self, number):
        pixels = zlib.decompress(self.images[number % len(self.images)])
        return torch.frombuffer(bytearray(pixels), dtype=torch.uint8).reshape(HEIGHT, WIDTH, 3)


class Automation:
    def __init__(self, coro, cost_map, image, exception_handler, on_complete):
        self.coro = coro
        self.cost_map = cost_map
        self.image = image
        self.exception_handler = exception_handler
        self.on_complete = on_complete
        self.duration = 0.0

    async def run(self):
        started = time.monotonic()
        try:
            await self.coro
        except Exception as error:
            self.exception_handler(error)
        else:
            self.duration = time.monotonic() - started
            self.on_complete()


class Automator:
    def __init__(self):
        self.automation = None
        self.completed = 0
        self.last_exception = None

    def start(self, coro, cost_map, image):
        automation = Automation(
            coro,
            cost_map,
            image,
            exception_handler=lambda error: self._handle_exception(automation, error),
            on_complete=lambda: self._handle_completion(automation),
        )
        self.automation = automation
        return asyncio.get_running_loop().create_task(automation.run(), name="automation")

    def _handle_exception(self, automation, error):
        self.last_exception = repr(error)
        if self.automation is automation:
            self.automation = None

    def _handle_completion(self, automation):
        self.completed += 1
        if self.automation is automation:
            self.automation = None


class Weeding:
    def __init__(self):
        self.camera = Camera()
        self.policy = nn.Sequential(
            nn.Conv2d(3, 16, 5, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(),
            nn.Conv2d(32, 32, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 2),
        ).eval()  # fmt: skip
        self.pose = torch.zeros(2)
        self.logged_bytes = 0

    def plan(self, image):
        grey = image.float().mean(2)[None, None]
        smooth = nn.functional.avg_pool2d(grey, 9, stride=1, padding=4)
        return nn.functional.interpolate(smooth, (CELLS, CELLS), mode="bilinear", align_corners=False)[0, 0].numpy()

    async def drive_row(self, image, cost_map):
        batch = image.permute(2, 0, 1)[None].float() / 255.0
        for step in range(5):
            self.pose += 0.01 * self.policy(torch.roll(batch, step, 3))[0] - float(cost_map[step].mean()) * 1e-6
            await asyncio.sleep(0)
        self.logged_bytes += len(zlib.compress(image.numpy().tobytes(), 4))


async def main():
    gc.disable()
    automator, weeding = Automator(), Weeding()
    started, row = time.monotonic(), 0
    while time.monotonic() - started < SECONDS:
        image = weeding.camera.capture(row)
        cost_map = weeding.plan(image)
        await automator.start(weeding.drive_row(image, cost_map), cost_map, image)
        row += 1
        if available_memory() < MIN_FREE:
            gc.collect()
        if row % 40 == 0:
            print(f"row {row}: {automator.completed} automations, {weeding.logged_bytes >> 20} MiB logged", flush=True)
    print(f"field done, last error {automator.last_exception}", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    asyncio.run(main())
