"""Classification of small images with a trainer, whose profiler says where the time goes."""

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile, record_function

STEPS = 3000


class PyTorchProfiler:
    """Around fit(); each hook of the trainer is a region of its own."""

    def __init__(self):
        self.profiler = profile(activities=[ProfilerActivity.CPU], record_shapes=True)

    def __enter__(self):
        self.profiler.__enter__()
        return self

    def __exit__(self, *exception):
        self.profiler.__exit__(*exception)

    def action(self, name):
        return record_function(f"[pl][profile]{name}")


class LitClassifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        layers = []
        for _ in range(12):
            layers += [torch.nn.Linear(64, 64), torch.nn.LayerNorm(64), torch.nn.GELU(), torch.nn.Dropout(0.1)]
        self.net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(256, 64), *layers, torch.nn.Linear(64, 10))

    def training_step(self, images, labels):
        return torch.nn.functional.cross_entropy(self.net(images), labels)


class Trainer:
    def __init__(self, profiler):
        self.profiler = profiler

    def fit(self, model, batches):
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3, foreach=False)
        with self.profiler:
            for step, (images, labels) in enumerate(batches):
                with self.profiler.action("training_step"):
                    loss = model.training_step(images, labels)
                with self.profiler.action("backward"):
                    optimizer.zero_grad()
                    loss.backward()
                with self.profiler.action("optimizer_step"):
                    optimizer.step()
                if step % 50 == 0:
                    print(f"step {step}: loss {loss.item():.3f}", flush=True)


def digits(count, batch=16):
    """Digits that are shifted and blurred at random, each batch anew."""
    rng = np.random.default_rng(0)
    patterns = rng.normal(size=(10, 256, 256))
    for _ in range(count):
        labels = rng.integers(0, 10, batch)
        images = [np.roll(patterns[label], rng.integers(-9, 10, 2), axis=(0, 1)) for label in labels]
        spectrum = np.fft.rfft2(np.stack(images)) * np.exp(-np.arange(129) / rng.uniform(20, 60))
        images = np.fft.irfft2(spectrum)[:, ::16, ::16].astype(np.float32)
        yield torch.from_numpy(np.ascontiguousarray(images))[:, None], torch.from_numpy(labels)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    Trainer(PyTorchProfiler()).fit(LitClassifier(), digits(STEPS))


if __name__ == "__main__":
    main()
