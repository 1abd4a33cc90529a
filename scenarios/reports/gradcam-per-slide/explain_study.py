"""Attention maps for the images of a study, made by a pool of processes and saved as files"""

import multiprocessing
import os
import time
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait

import numpy as np

SECONDS = 26.0
model = None


def load_model():
    global model
    from grad_cam import make_network

    model = make_network()


def explain(number):
    import torch
    from grad_cam import GradCAM

    generator = torch.Generator().manual_seed(number)
    coarse = torch.rand(1, 3, 32, 32, generator=generator)
    image = torch.nn.functional.interpolate(coarse, size=(256, 256), mode="bicubic")
    cam = GradCAM(model=model, target_layer=model.stages[1])
    heat = cam(image, target_category=number % 12)
    del cam
    return number, heat


def main():
    os.makedirs("maps", exist_ok=True)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context, initializer=load_model) as pool:
        started, number, pending = time.monotonic(), 0, set()
        while True:
            while len(pending) < 4 and time.monotonic() - started < SECONDS:
                pending.add(pool.submit(explain, number))
                number += 1
            if not pending:
                break
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                which, heat = future.result()
                np.save(os.path.join("maps", f"image_{which:05d}.npy"), heat)
                if which % 25 == 0:
                    print(f"image {which}: warmest at {np.unravel_index(heat.argmax(), heat.shape)}", flush=True)
    print(f"{number} maps", flush=True)


if __name__ == "__main__":
    main()
