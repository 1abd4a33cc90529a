"""The generator process: makes an image of noise in some steps, and puts it into shared memory"""

import time
from multiprocessing.shared_memory import SharedMemory

import numpy as np
import torch

WIDTH, HEIGHT, STEP_S = 768, 768, 0.02


class Denoiser(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.network = torch.nn.Sequential(
            torch.nn.Conv2d(4, 16, 3, padding=1), torch.nn.SiLU(), torch.nn.Conv2d(16, 4, 3, padding=1)
        )

    @torch.inference_mode()
    def sample(self, seed, steps):
        latents = torch.randn(1, 4, HEIGHT // 8, WIDTH // 8, generator=torch.Generator().manual_seed(seed))
        for _ in range(steps):
            started, first = time.monotonic(), True
            while first or time.monotonic() - started < STEP_S:
                latents = 0.95 * latents + 0.05 * self.network(latents)
                first = False
        image = torch.nn.functional.interpolate(latents, size=(HEIGHT, WIDTH), mode="bilinear")
        return torch.sigmoid(image)[0].permute(1, 2, 0).contiguous().numpy()


def main(pipe):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    denoiser = Denoiser().eval()
    while (request := pipe.recv()) is not None:
        image = denoiser.sample(request["seed"], request["steps"])
        shared_memory = SharedMemory(create=True, size=image.nbytes)
        target = np.ndarray(image.shape, dtype=np.float32, buffer=shared_memory.buf)
        target[:] = image
        del target
        shared_memory.close()
        pipe.send({"name": shared_memory.name, "seed": request["seed"], "width": WIDTH, "height": HEIGHT})
