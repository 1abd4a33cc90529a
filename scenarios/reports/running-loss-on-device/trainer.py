"""A small trainer that logs the mean loss since the last log"""

import resource
import time

import torch


class Trainer:
    def __init__(self, model, batches, learning_rate, logging_steps):
        self.model, self.batches = model, batches
        self.logging_steps, self.global_step = logging_steps, 0
        self.device = next(model.parameters()).device
        self.optimizer = torch.optim.AdamW(model.parameters(), learning_rate, fused=True)

    def _prepare_inputs(self, inputs):
        return {name: value.to(self.device) for name, value in inputs.items()}

    def training_step(self, inputs):
        self.model.train()
        loss = self.model(**self._prepare_inputs(inputs))
        loss.backward()
        return loss

    def train(self, seconds):
        # On the device: item() would wait for the GPU at each step.
        tr_loss = torch.tensor(0.0).to(self.device)
        logging_loss = 0.0
        end = time.monotonic() + seconds
        for inputs in self.batches:
            tr_loss += self.training_step(inputs)
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.global_step += 1
            if self.global_step % self.logging_steps == 0:
                total = tr_loss.item()
                self.log({"loss": (total - logging_loss) / self.logging_steps})
                logging_loss = total
            if time.monotonic() > end:
                break
        return tr_loss.item() / self.global_step

    def log(self, logs):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"step {self.global_step}: {logs}, {peak:.0f} MiB", flush=True)
