"""
Differentiates through a training: how much does each example of each batch change the loss at the end? The states of
every so manieth step are stashed in memory; the steps between them are replayed from the last stretch to the first.
"""

import math

import torch
from torch import nn

WIDTHS = (128, 1024, 1024, 16)


def sizes():
    for before, after in zip(WIDTHS, WIDTHS[1:]):
        yield after, before
        yield (after,)


def initial(generator):
    parts = []
    for shape in sizes():
        scale = shape[1] ** -0.5 if len(shape) == 2 else 0.0
        parts.append((scale * torch.randn(*shape, generator=generator)).flatten())
    theta = torch.cat(parts)
    return theta, torch.zeros_like(theta), torch.zeros_like(theta)


def predict(theta, inputs):
    parts = theta.split([math.prod(shape) for shape in sizes()])
    views = [part.view(shape) for part, shape in zip(parts, sizes())]
    for weight, bias in zip(views[:-2:2], views[1:-2:2]):
        inputs = torch.tanh(nn.functional.linear(inputs, weight, bias))
    return nn.functional.linear(inputs, views[-2], views[-1])


def adam(theta, first, second, gradient, step, lr=1e-3, eps_root=1e-8):
    first = 0.9 * first + 0.1 * gradient
    second = 0.99 * second + 0.01 * gradient**2
    corrected = second / (1 - 0.99**step)
    theta = theta - lr / (1 - 0.9**step) * first / (torch.sqrt(corrected + eps_root) + 1e-6)
    return theta, first, second


def copied(state):
    return tuple(tensor.detach().clone() for tensor in state)


class Trainer:
    def __init__(self, batches, state):
        self.batches, self.state, self.step = batches, state, 0

    def weighted_loss(self, theta, weights):
        inputs, targets = self.batches(self.step)
        losses = nn.functional.cross_entropy(predict(theta, inputs), targets, reduction="none")
        return (weights * losses).mean()

    def train_step(self):
        theta = self.state[0].requires_grad_()
        loss = self.weighted_loss(theta, 1.0)
        (gradient,) = torch.autograd.grad(loss, theta)
        with torch.no_grad():
            self.state = adam(*self.state, gradient, self.step + 1)
        self.step += 1
        return loss.item()

    def backward_step(self, adjoint):
        """From the adjoint of the state after this step to the one before, and the scores of the batch"""
        state = [tensor.detach().requires_grad_() for tensor in self.state]
        weights = torch.ones(len(self.batches(self.step)[1]), requires_grad=True)
        (gradient,) = torch.autograd.grad(self.weighted_loss(state[0], weights), state[0], create_graph=True)
        after = adam(*state, gradient, self.step + 1)
        *adjoint, scores = torch.autograd.grad(after, [*state, weights], grad_outputs=adjoint)
        return adjoint, scores


class Stash:
    """Checkpoints in memory; what goes in and what comes out is a copy"""

    def __init__(self):
        self.states = {}

    def save(self, trainer):
        self.states[trainer.step] = copied(trainer.state)

    def restore(self, trainer, step):
        trainer.state, trainer.step = copied(self.states[step]), step

    def drop(self, step):
        del self.states[step]
