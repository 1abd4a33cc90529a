"""Transfers the style of one picture to another, tile by tile, on several workers"""

import multiprocessing
import time

import numpy as np
import torch
from torch import nn

from shared import SharedNDArray

torch.set_num_threads(1)
SIDE, TILE, WORKERS, ITERATIONS, TILE_S = 768, 384, 2, 400, 0.25


class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 12, 3, padding=1)
        self.second = nn.Conv2d(12, 24, 3, padding=1, stride=2)

    def forward(self, image):
        shallow = torch.relu(self.first(image))
        return shallow, torch.relu(self.second(shallow))


def gram(features):
    flat = features.flatten(2)[0]
    return flat @ flat.T / flat.shape[1]


class TileWorker:
    """Evaluates the loss of tiles and its gradient"""

    def __init__(self, requests, responses):
        self.requests, self.responses = requests, responses

    def run(self):
        torch.set_num_threads(1)
        torch.manual_seed(0)
        self.model = Features().requires_grad_(False)
        style = torch.from_numpy(np.random.default_rng(7).random((1, 3, TILE, TILE), dtype=np.float32))
        self.styles = [gram(one) for one in self.model(style)]
        while (request := self.requests.get()) is not None:
            position, tile = request
            try:
                self.responses.put((position, *self.eval_sc_grad(tile.array)))
            except OSError as error:
                self.responses.put((position, None, error))
            del tile, request

    def eval_sc_grad(self, tile):
        until = time.monotonic() + TILE_S
        image = torch.from_numpy(tile.copy())[None]
        content = self.model(image)[1]
        while True:
            moving = image.clone().requires_grad_(True)
            found = self.model(moving)
            loss = 1e-3 * (found[1] - content).square().mean()
            for one, style in zip(found, self.styles):
                loss = loss + (gram(one) - style).square().mean()
            loss.backward()
            if time.monotonic() > until:
                break
        return loss.item(), SharedNDArray.copy(moving.grad[0].numpy())


class StyleTransfer:
    def __init__(self):
        context = multiprocessing.get_context("fork")
        self.requests, self.responses = context.Queue(), context.Queue()
        self.workers = []
        for _ in range(WORKERS):
            worker = TileWorker(self.requests, self.responses)
            self.workers.append(context.Process(target=worker.run, daemon=True))
            self.workers[-1].start()

    def gradient(self, image):
        gradient, total, tiles = np.zeros_like(image), 0.0, {}
        for top in range(0, SIDE, TILE):
            for left in range(0, SIDE, TILE):
                tiles[top, left] = SharedNDArray.copy(image[:, top:top + TILE, left:left + TILE])
                self.requests.put(((top, left), tiles[top, left]))
        for _ in range(len(tiles)):
            (top, left), loss, part = self.responses.get()
            tiles.pop((top, left)).unlink()
            if loss is None:
                raise part
            gradient[:, top:top + TILE, left:left + TILE] = part.array
            total += loss
        return total, gradient

    def transfer(self, image):
        momentum = np.zeros_like(image)
        for iteration in range(1, ITERATIONS + 1):
            loss, gradient = self.gradient(image)
            momentum *= 0.9
            momentum += 0.1 * gradient / (np.abs(gradient).mean() + 1e-12)
            image -= 0.01 * momentum
            np.clip(image, 0.0, 1.0, out=image)
            if iteration % 5 == 0:
                print(f"iteration {iteration}/{ITERATIONS}, loss {loss:.5f}", flush=True)
        for _ in self.workers:
            self.requests.put(None)
        for worker in self.workers:
            worker.join()
        return image


def main():
    picture = np.random.default_rng(1).random((3, SIDE, SIDE), dtype=np.float32)
    result = StyleTransfer().transfer(picture)
    print(f"mean {result.mean():.4f}", flush=True)


if __name__ == "__main__":
    main()
