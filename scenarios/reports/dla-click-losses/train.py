"""Unbiased learning to rank from simulated clicks: a ranker and a propensity model learn from each other (DLA)."""

import time

import torch
from torch import nn

SECONDS = 22.0
LIST_SIZE, FEATURES, BATCH = 10, 46, 24


class RankingDNN(nn.Module):
    def __init__(self, sizes=(32, 16)):
        super().__init__()
        layers, width = [], FEATURES
        for size in sizes:
            layers += [nn.LayerNorm(width), nn.Linear(width, size), nn.ELU()]
            width = size
        self.sequential = nn.Sequential(*layers, nn.Linear(width, 1))

    def forward(self, documents):
        return torch.cat([self.sequential(documents[:, i]) for i in range(documents.shape[1])], dim=1)


class DenoisingNet(nn.Module):
    """The chance that a position is examined, from the clicks above it."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(LIST_SIZE, 1)

    def forward(self, clicks):
        outputs = []
        for i in range(LIST_SIZE):
            position = torch.zeros_like(clicks)
            position[:, i] = 1
            outputs.append(torch.nn.functional.elu(self.linear(position)))
        return torch.cat(outputs, dim=1)


class DLA:
    def __init__(self):
        self.model, self.propensity_model = RankingDNN(), DenoisingNet()
        parameters = [*self.model.parameters(), *self.propensity_model.parameters()]
        self.optimizer = torch.optim.Adagrad(parameters, lr=0.02)
        self.loss = None

    def softmax_loss(self, output, labels, weights):
        log_probabilities = torch.log_softmax(output, dim=1)
        return -(labels * weights * log_probabilities).sum() / (labels.sum() + 1e-6)

    def normalized_weights(self, propensity):
        parts = [propensity[:, :1] / propensity[:, i : i + 1] for i in range(LIST_SIZE)]
        return torch.cat(parts, dim=1).clamp(0, 10)

    def train(self, documents, clicks):
        scores = self.model(documents)
        propensity = self.propensity_model(clicks)
        inverse_propensity = self.normalized_weights(torch.softmax(propensity, dim=1))
        inverse_relevance = self.normalized_weights(torch.softmax(scores, dim=1))
        rank_loss = self.softmax_loss(scores, clicks, inverse_propensity.detach())
        exam_loss = self.softmax_loss(propensity, clicks, inverse_relevance.detach())
        self.loss = exam_loss + rank_loss
        for parameter in self.model.parameters():
            self.loss = self.loss + 1e-4 * parameter.square().sum()
        self.optimizer.zero_grad()
        self.loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
        self.optimizer.step()
        return self.loss, scores.detach()


class ClickSimulation:
    def __init__(self):
        self.generator = torch.Generator().manual_seed(7)
        self.taste = torch.randn(FEATURES, generator=self.generator)
        self.examined = 1 / torch.arange(1.0, LIST_SIZE + 1)

    def batch(self):
        documents = torch.randn(BATCH, LIST_SIZE, FEATURES, generator=self.generator)
        relevant = torch.sigmoid(documents @ self.taste)
        clicks = torch.rand(BATCH, LIST_SIZE, generator=self.generator) < relevant * self.examined
        return documents, clicks.float()


def main():
    torch.set_num_threads(1)
    algorithm, clicks = DLA(), ClickSimulation()
    loss, best, step, end = 0.0, float("inf"), 0, time.monotonic() + SECONDS
    while time.monotonic() < end:
        step_loss, scores = algorithm.train(*clicks.batch())
        loss += step_loss
        step += 1
        if step % 200 == 0:
            average = loss.item() / step
            best = min(best, average)
            print(f"step {step}: loss {average:.4f} best {best:.4f} top score {scores.max():.3f}", flush=True)


if __name__ == "__main__":
    main()
