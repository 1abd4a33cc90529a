"""Differentially private training: hooks record what each layer saw, from which per-sample gradients come."""

import time

import torch
from torch import nn

SECONDS = 22.0
BATCH = 32


class GradSampleModule(nn.Module):
    """Adds `grad_sample` to the parameters of linear and convolutional layers."""

    def __init__(self, module):
        super().__init__()
        self._module = module
        for layer in self.supported():
            layer.activations = []
            layer.register_forward_hook(self.capture_activations)
            layer.register_full_backward_hook(self.capture_backprops)

    def supported(self):
        return [layer for layer in self._module.modules() if isinstance(layer, (nn.Linear, nn.Conv2d))]

    def forward(self, x):
        return self._module(x)

    def capture_activations(self, layer, inputs, output):
        if layer.training:
            layer.activations.append(inputs[0].detach())

    def capture_backprops(self, layer, grad_input, grad_output):
        activations, backprops = layer.activations.pop(), grad_output[0].detach()
        if isinstance(layer, nn.Linear):
            layer.weight.grad_sample = torch.einsum("ni,nj->nij", backprops, activations)
        else:
            columns = nn.functional.unfold(activations, layer.kernel_size, padding=layer.padding, stride=layer.stride)
            sample = torch.einsum("nop,nkp->nok", backprops.flatten(2), columns)
            layer.weight.grad_sample = sample.view(len(sample), *layer.weight.shape)


class DPOptimizer:
    def __init__(self, model, lr=0.05, max_grad_norm=1.0, noise=0.4):
        self.model, self.lr, self.max_grad_norm, self.noise = model, lr, max_grad_norm, noise

    @torch.no_grad()
    def step(self):
        weights = [layer.weight for layer in self.model.supported()]
        norms = torch.stack([w.grad_sample.flatten(1).norm(dim=1) for w in weights]).norm(dim=0)
        factor = (self.max_grad_norm / (norms + 1e-6)).clamp(max=1.0)
        for weight in weights:
            total = torch.einsum("n,n...->...", factor, weight.grad_sample)
            total += torch.randn_like(total) * self.noise * self.max_grad_norm
            weight -= self.lr * total / len(factor)
            weight.grad_sample = None


def sample_batch():
    label = torch.randint(0, 10, (BATCH,))
    image = torch.randn(BATCH, 1, 40, 40)
    image[torch.arange(BATCH), 0, label * 4] += 3
    return image, label


def validate(model, batches=4):
    correct = 0
    with torch.no_grad():
        for _ in range(batches):
            image, label = sample_batch()
            correct += (model(image).argmax(1) == label).sum().item()
    return correct / (batches * BATCH)


def main():
    torch.set_num_threads(1)
    model = GradSampleModule(
        nn.Sequential(
            nn.Conv2d(1, 8, 5, padding=2),
            nn.ReLU(),
            nn.Conv2d(8, 8, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(4),
            nn.Flatten(),
            nn.Linear(800, 32),
            nn.ReLU(),
            nn.Linear(32, 10),
        )
    )
    optimizer = DPOptimizer(model)
    end, step = time.monotonic() + SECONDS, 0
    model.train()
    while time.monotonic() < end:
        image, label = sample_batch()
        loss = nn.functional.cross_entropy(model(image), label)
        loss.backward()
        optimizer.step()
        model.zero_grad()
        step += 1
        if step % 10 == 0:
            print(f"step {step} loss {loss.item():.3f} accuracy {validate(model):.3f}", flush=True)


if __name__ == "__main__":
    main()
