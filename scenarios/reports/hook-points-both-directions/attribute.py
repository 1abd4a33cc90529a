"""Scores the components of a vision transformer by the product of gradients and differences of activations"""

import time

import torch

from hooked_vit import PATCH, TOKENS, HookedViT

torch.set_num_threads(1)
SECONDS, BATCH, BATCH_S = 36.0, 8, 0.15


def make_hooks(model, scores):
    """The hooks that store the activations of corrupted images, those for clean ones, and those for gradients"""
    differences = {}

    def corrupted_hook(activations, hook):
        differences[hook.name] = activations.detach().clone()

    def clean_hook(activations, hook):
        differences[hook.name] -= activations.detach()

    def gradient_hook(gradients, hook):
        scores[hook.name] += torch.dot(gradients.detach().reshape(-1), differences[hook.name].view(-1)).item()

    names = [point.name for point in model.hook_points()]
    return tuple([(name, hook) for name in names] for hook in (corrupted_hook, clean_hook, gradient_hook))


def attribute(model, clean, corrupted, labels, scores):
    corrupted_hooks, clean_hooks, gradient_hooks = make_hooks(model, scores)
    model.add_hooks(fwd_hooks=corrupted_hooks)
    with torch.no_grad():
        model(corrupted)
    model.reset_hooks("fwd")
    model.add_hooks(fwd_hooks=clean_hooks, bwd_hooks=gradient_hooks)
    loss = torch.nn.functional.cross_entropy(model(clean), labels)
    loss.backward()
    model.reset_hooks("both")
    model.zero_grad()
    return loss.item()


def batches(generator):
    while True:
        clean = torch.rand((BATCH, TOKENS, 3 * PATCH * PATCH), generator=generator)
        corrupted = clean[:, torch.randperm(TOKENS, generator=generator)]
        yield clean, corrupted, torch.randint(0, 10, (BATCH,), generator=generator)


def main():
    torch.manual_seed(0)
    model = HookedViT()
    scores = {point.name: 0.0 for point in model.hook_points()}
    started = time.monotonic()
    for number, (clean, corrupted, labels) in enumerate(batches(torch.Generator().manual_seed(1)), 1):
        until = time.monotonic() + BATCH_S
        loss = attribute(model, clean, corrupted, labels, scores)
        accuracy = 0.0
        while time.monotonic() < until:
            with torch.no_grad():
                accuracy = (model(clean).argmax(1) == labels).float().mean().item()
        if number % 20 == 0:
            best = max(scores, key=lambda name: abs(scores[name]))
            print(f"batch {number}: loss {loss:.4f}, accuracy {accuracy:.2f}, {best} {scores[best]:.4f}", flush=True)
        if time.monotonic() - started > SECONDS:
            break
    print(f"{number} batches", flush=True)


if __name__ == "__main__":
    main()
