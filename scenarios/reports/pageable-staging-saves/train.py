"""Training with a checkpoint every two seconds: staged in pageable host memory, written by a thread behind the steps"""

import os
import threading
import time

import torch
from torch import nn

SECONDS, EVERY_S, KEPT, WIDTH, EXPERTS = 27.0, 2.0, 2, 768, 16


class Expert(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH // 2)
        self.back = nn.Linear(WIDTH // 2, WIDTH, bias=False)

    def forward(self, x):
        return x + self.back(torch.relu(self.down(torch.relu(self.up(x)))))


class Checkpointer:
    """One save at a time; the staged copies are let go when the save is committed"""

    def __init__(self, folder):
        self.folder, self.thread, self.saved, self.failure = folder, None, [], None
        os.makedirs(folder, exist_ok=True)

    def save(self, step, model, optimizer):
        self.wait_until_finished()
        staged = {name: value.detach().clone() for name, value in model.state_dict().items()}
        moments = optimizer.state_dict()["state"]
        for number, state in moments.items():
            staged[f"m.{number}"], staged[f"v.{number}"] = state["exp_avg"].clone(), state["exp_avg_sq"].clone()
        self.thread = threading.Thread(target=self._commit, args=(step, staged), name=f"save-{step}")
        self.thread.start()

    def _commit(self, step, staged):
        try:
            path = os.path.join(self.folder, f"step-{step}.ckpt")
            torch.save(staged, path + ".tmp")
            os.rename(path + ".tmp", path)
            self.saved.append(path)
            while len(self.saved) > KEPT:
                os.unlink(self.saved.pop(0))
        except Exception as error:
            self.failure = error

    def wait_until_finished(self):
        if self.thread is not None:
            self.thread.join()
            self.thread = None
        if self.failure is not None:
            raise self.failure


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(*[Expert() for _ in range(EXPERTS // 2)])
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, foreach=False)
    checkpointer = Checkpointer("checkpoints")
    started = last = time.monotonic()
    step = 0
    while time.monotonic() - started < SECONDS:
        tokens = torch.randn(64, WIDTH)
        loss = (model(tokens) - tokens.flip(0)).pow(2).mean()
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
        step += 1
        if time.monotonic() - last > EVERY_S:
            checkpointer.save(step, model, optimizer)
            last = time.monotonic()
            print(f"step {step}: loss {loss.item():.4f}, {len(checkpointer.saved)} checkpoints kept", flush=True)
    checkpointer.wait_until_finished()


if __name__ == "__main__":
    main()
