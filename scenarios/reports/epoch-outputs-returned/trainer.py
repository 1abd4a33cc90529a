"""A trainer with the hooks that the script uses"""

import time

import torch


class Module(torch.nn.Module):
    def training_epoch_end(self, outputs):
        return {}


class Trainer:
    def __init__(self, max_epochs, seconds_per_epoch):
        self.max_epochs, self.seconds_per_epoch = max_epochs, seconds_per_epoch
        self.logged = {}

    def fit(self, module, train, validation):
        optimizer = module.configure_optimizers()
        for epoch in range(self.max_epochs):
            self._train_epoch(module, train, optimizer)
            accuracy = self._validate(module, validation)
            logged = {name: round(value, 4) for name, value in self.logged.items()}
            print(f"epoch {epoch}: {logged}, accuracy {accuracy:.3f}", flush=True)

    def _batches(self, loader):
        ends = time.monotonic() + self.seconds_per_epoch
        while True:
            for batch in loader:
                yield batch
                if time.monotonic() > ends:
                    return

    def _train_epoch(self, module, loader, optimizer):
        module.train()
        epoch_outputs, total = [], 0.0
        for number, batch in enumerate(self._batches(loader)):
            output = module.training_step(batch, number)
            optimizer.zero_grad()
            output["loss"].backward()
            optimizer.step()
            output["loss"] = output["loss"].item()
            total += output["loss"]
            epoch_outputs.append(output)
        self.logged = {"loss": total / len(epoch_outputs), **module.training_epoch_end(epoch_outputs)}

    def _validate(self, module, loader):
        module.eval()
        with torch.no_grad():
            scores = [module.validation_step(batch, number) for number, batch in enumerate(loader)]
        return sum(scores) / len(scores)
