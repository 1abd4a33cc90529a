"""Classification of small images with a trainer, whose profiler says where the time goes."""

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
            layers += [torch.nn.Linear(384, 384), torch.nn.LayerNorm(384), torch.nn.GELU(), torch.nn.Dropout(0.1)]
        self.net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(256, 384), *layers, torch.nn.Linear(384, 10))

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


def digits(count):
    patterns = torch.randn(10, 1, 16, 16)
    for _ in range(count):
        labels = torch.randint(0, 10, (128,))
        yield patterns[labels] + 0.7 * torch.randn(128, 1, 16, 16), labels


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    Trainer(PyTorchProfiler()).fit(LitClassifier(), digits(STEPS))


if __name__ == "__main__":
    main()
