"""Checkpoints: the model and the optimizer once, and where each rank is in its data."""

import os

import torch
import torch.distributed as dist


class CheckpointManager:
    def __init__(self, output_dir):
        self.folder = os.path.join(output_dir, "checkpoints")

    def path(self, step):
        return os.path.join(self.folder, f"step_{step}")

    def save(self, model, optimizer, dataloader, step):
        path = self.path(step)
        os.makedirs(os.path.join(path, "dataloader"), exist_ok=True)
        if dist.get_rank() == 0:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, os.path.join(path, "trainer.pt"))
        torch.save(dataloader.state_dict(), os.path.join(path, "dataloader", f"rank_{dist.get_rank()}.pt"))
        dist.barrier()

    def latest(self):
        return max(int(name.removeprefix("step_")) for name in os.listdir(self.folder))

    def load(self, model, optimizer, dataloader, step):
        path = self.path(step)
        state = torch.load(os.path.join(path, "trainer.pt"), mmap=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        dataloader.load_state_dict(torch.load(os.path.join(path, "dataloader", f"rank_{dist.get_rank()}.pt")))
