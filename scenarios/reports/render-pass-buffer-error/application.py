"""The application: asks its generator process for images, and then renders a pass with them"""

import collections
import multiprocessing
import time
from multiprocessing.shared_memory import SharedMemory

import numpy as np

import generator

SECONDS, HISTORY = 24.0, 12


class GeneratorProcess:
    def __init__(self):
        context = multiprocessing.get_context("spawn")
        self.pipe, end = context.Pipe()
        self.process = context.Process(target=generator.main, args=(end,), daemon=True)
        self.process.start()
        end.close()

    def prompt2image(self, prompt, seed, steps, callback):
        self.pipe.send({"prompt": prompt, "seed": seed, "steps": steps})
        answer = self.pipe.recv()
        callback(answer["name"], answer["seed"], answer["width"], answer["height"])

    def close(self):
        self.pipe.send(None)
        self.process.join()


class Scene:
    def __init__(self):
        self.history = collections.deque(maxlen=HISTORY)
        self.render_result = None

    def image_callback(self, name, seed, width, height):
        shared_memory = SharedMemory(name=name)
        try:
            pixels = np.frombuffer(shared_memory.buf, dtype=np.float32, count=width * height * 4)
            self.history.append((seed, pixels.reshape(height, width, 4).copy()))
            del pixels
            shared_memory.close()
        finally:
            shared_memory.unlink()

    def render_pass_callback(self, name, seed, width, height):
        shared_memory = SharedMemory(name=name)
        try:
            pixels = np.frombuffer(shared_memory.buf, dtype=np.float32, count=width * height * 4)
            self.render_result = np.flipud(pixels.reshape(height, width, 4))
            shared_memory.close()
        finally:
            shared_memory.unlink()


def main():
    process, scene = GeneratorProcess(), Scene()
    started, number = time.monotonic(), 0
    while time.monotonic() - started < SECONDS:
        process.prompt2image("cracked clay, seamless", number, 20, scene.image_callback)
        number += 1
        if number % 10 == 0:
            seed, image = scene.history[-1]
            print(f"image {number}: seed {seed}, mean {image.mean():.4f}", flush=True)
    print("render pass", flush=True)
    process.prompt2image("cracked clay, from the camera", number, 20, scene.render_pass_callback)
    print(f"rendered, mean {scene.render_result.mean():.4f}", flush=True)
    process.close()


if __name__ == "__main__":
    main()
