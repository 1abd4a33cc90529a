"""Saves the state of a model again and again with torch.distributed.checkpoint, and waits for each save"""

import os
import shutil
import tempfile
import time
import warnings

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
SAVES, WIDTH, LAYERS, SAVE_S = 16, 1024, 20, 1.4


class CheckpointRunner:
    def __init__(self, folder):
        self.folder = folder
        dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=0, world_size=1)

    def save_and_wait(self, state_dict, number):
        begin = time.monotonic()
        response = dcp.async_save(state_dict, checkpoint_id=os.path.join(self.folder, f"step-{number}"))
        response.result()
        if number > 1:
            shutil.rmtree(os.path.join(self.folder, f"step-{number - 1}"))
        return time.monotonic() - begin

    def close(self):
        dist.destroy_process_group()


def main():
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with tempfile.TemporaryDirectory() as folder:
        runner, begin = CheckpointRunner(folder), time.monotonic()
        for number in range(1, SAVES + 1):
            steps = 0
            while steps == 0 or time.monotonic() < begin + (number - 0.5) * SAVE_S:
                inputs = torch.randn(8, WIDTH)
                loss = (model(inputs) - inputs).pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                steps += 1
            took = runner.save_and_wait({"model": model.state_dict(), "step": number}, number)
            print(f"save {number}: after {steps} steps, loss {loss.item():.3f}, took {took:.2f} s", flush=True)
        runner.close()


if __name__ == "__main__":
    main()
