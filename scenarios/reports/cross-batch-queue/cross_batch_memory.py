"""A loss that compares a batch with the embeddings of former batches as well"""

import torch
from torch import nn


class ContrastiveLoss(nn.Module):
    def __init__(self, margin=0.5):
        super().__init__()
        self.margin = margin

    def forward(self, embeddings, labels, others, other_labels):
        similarity = embeddings @ others.t()
        same = labels[:, None] == other_labels[None, :]
        positive = (1.0 - similarity) * same
        negative = (similarity - self.margin).clamp(min=0) * ~same
        return positive.sum() / same.sum().clamp(min=1) + negative.sum() / (~same).sum().clamp(min=1)


class CrossBatchMemory(nn.Module):
    def __init__(self, loss, embedding_size, memory_size):
        super().__init__()
        self.loss, self.memory_size = loss, memory_size
        self.embedding_memory = torch.empty(memory_size, embedding_size)
        self.label_memory = torch.zeros(memory_size, dtype=torch.long)
        self.queue_index, self.filled = 0, 0

    def add_to_memory(self, embeddings, labels):
        rows = (torch.arange(len(labels)) + self.queue_index) % self.memory_size
        self.embedding_memory[rows] = embeddings.detach()
        self.label_memory[rows] = labels
        self.queue_index = (self.queue_index + len(labels)) % self.memory_size
        self.filled = min(self.memory_size, self.filled + len(labels))

    def compare(self, embeddings, labels, count):
        rows = torch.randint(0, self.filled, (count,))
        return self.loss(embeddings, labels, self.embedding_memory[rows], self.label_memory[rows])

    def forward(self, embeddings, labels):
        self.add_to_memory(embeddings, labels)
        return self.loss(embeddings, labels, embeddings.detach(), labels) + self.compare(embeddings, labels, 1000)
