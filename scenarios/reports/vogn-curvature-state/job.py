"""Trains a Bayesian perceptron by VOGN, and evaluates it by Monte Carlo samples of its weights after each epoch"""

import time

import torch
from models import MLP
from optimizers import VOGN
from torch import nn

torch.set_num_threads(1)
EPOCHS, BATCHES, BATCH, TEST, EVALUATION_S = 25, 8, 200, 1000, 0.9


def digits(count, generator, prototypes):
    classes = torch.randint(0, 10, (count,), generator=generator)
    images = prototypes[classes] + 0.7 * torch.randn(count, prototypes.shape[1], generator=generator)
    return images, classes


def make_closure(model, images, classes):
    def closure():
        output, inputs, combinations = model(images)
        loss = nn.functional.cross_entropy(output, classes, reduction="sum")
        grad, ggn = [], []
        # The gradient of each example's weights is an outer product, so its square is one as well
        for a, g in zip(inputs, torch.autograd.grad(loss, combinations)):
            grad += [g.t() @ a, g.sum(0)]
            ggn += [(g**2).t() @ a**2, (g**2).sum(0)]
        return loss, grad, ggn, len(images)

    return closure


def evaluate(model, optimizer, images, classes):
    """The log loss of the mean of as many samples as the time allows"""
    end, total, samples = time.monotonic() + EVALUATION_S, 0.0, 0
    with torch.no_grad():
        while time.monotonic() < end or samples < 2:
            total = total + optimizer.mc_prediction(model.predict, images).softmax(1)
            samples += 1
    mean = total / samples
    right = (mean.argmax(1) == classes).float().mean().item()
    return nn.functional.nll_loss(mean.clamp_min(1e-9).log(), classes).item(), right, samples


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    prototypes = torch.randn(10, 784, generator=generator)
    train, test = digits(BATCHES * BATCH, generator, prototypes), digits(TEST, generator, prototypes)
    model = MLP(784, 256, 128, 10)
    optimizer = VOGN(model.parameters(), train_set_size=BATCHES * BATCH)
    for epoch in range(1, EPOCHS + 1):
        total = 0.0
        for rows in torch.randperm(BATCHES * BATCH, generator=generator).split(BATCH):
            loss = optimizer.step(make_closure(model, train[0][rows], train[1][rows]))
            total += loss.item()
        log_loss, right, samples = evaluate(model, optimizer, *test)
        print(
            f"epoch {epoch}: train {total / (BATCHES * BATCH):.3f}, test {log_loss:.3f}, "
            f"accuracy {right:.3f} ({samples} samples)",
            flush=True,
        )


if __name__ == "__main__":
    main()
