"""Fits splats to the pixels of an image, refines them now and then, and saves a checkpoint every few seconds."""

import os
import tempfile
import time

import torch
from optimizers import Optimizers
from torch import nn

SPLATS, PIXELS, MOST = 6000, 256, 12_000
REFINE_SECONDS, SAVE_SECONDS, RESET_SECONDS, SECONDS = 1.5, 4.0, 14.0, 26.0


def target(places):
    return torch.stack([torch.sin(9 * places[:, 0]), torch.cos(7 * places[:, 1]), torch.sin(5 * places.sum(1))], 1) / 2 + 0.5


def render(parameters, places):
    distance = (places[:, None] - parameters["means"][None]).square().sum(-1)
    weights = torch.exp(-distance / (2 * torch.exp(2 * parameters["scales"])[None, :, 0]))
    weights = weights * torch.sigmoid(parameters["opacities"])[None, :, 0]
    return weights @ torch.sigmoid(parameters["colors"]) / (weights.sum(1, keepdim=True) + 1e-4)


class Trainer:
    def __init__(self, folder):
        self.folder = folder
        parameters = {
            "means": nn.Parameter(torch.rand(SPLATS, 2)),
            "scales": nn.Parameter(torch.full((SPLATS, 1), -4.0)),
            "opacities": nn.Parameter(torch.randn(SPLATS, 1)),
            "colors": nn.Parameter(torch.randn(SPLATS, 3)),
        }
        rates = {"means": 2e-4, "scales": 5e-3, "opacities": 2e-2, "colors": 1e-2}
        self.optimizers = Optimizers(parameters, rates)
        self.step = 0

    def train_iteration(self):
        places = torch.rand(PIXELS, 2)
        loss = nn.functional.l1_loss(render(self.optimizers.parameters, places), target(places))
        self.optimizers.zero_grad()
        loss.backward()
        self.optimizers.step()
        self.step += 1
        return loss.item()

    def refine(self):
        opacities = torch.sigmoid(self.optimizers.parameters["opacities"].detach())[:, 0]
        self.optimizers.cull(opacities > 0.02)
        count = len(self.optimizers.parameters["means"])
        self.optimizers.duplicate(torch.randperm(count)[: min(count // 8, MOST - count)])

    def save_checkpoint(self):
        path = os.path.join(self.folder, f"step-{self.step:09d}.ckpt")
        torch.save({"step": self.step, "pipeline": self.optimizers.parameters, "optimizers": self.optimizers.state_dict()}, path)
        for name in os.listdir(self.folder):
            if os.path.join(self.folder, name) != path:
                os.remove(os.path.join(self.folder, name))

    def train(self):
        start = time.monotonic()
        refined, saved, reset = start, start, start
        while (now := time.monotonic()) < start + SECONDS:
            loss = self.train_iteration()
            if now > refined + REFINE_SECONDS:
                self.refine()
                refined = now
                print(f"step {self.step}: loss {loss:.4f}, {len(self.optimizers.parameters['means'])} splats", flush=True)
            if now > reset + RESET_SECONDS:
                self.optimizers.reset_opacities(-1.5)
                reset = now
            if now > saved + SAVE_SECONDS:
                self.save_checkpoint()
                saved = now


def main():
    torch.set_num_threads(2)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        Trainer(folder).train()


if __name__ == "__main__":
    main()
