"""Checkpoints: the model and the notes of rank 0, and the optimizer of each rank"""

import json
import os

import torch


def save_checkpoint(folder, step, model, optimizer, rank):
    if rank == 0:
        os.makedirs(folder, exist_ok=True)
        torch.save(model, os.path.join(folder, f"model_{step:06}.pt"))
        with open(os.path.join(folder, f"meta_{step:06}.json"), "w") as file:
            json.dump({"step": step, "tensors": len(model)}, file)
    torch.save(optimizer, os.path.join(folder, f"optim_{step:06}_rank{rank}.pt"))
