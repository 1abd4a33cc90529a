"""Trains a small T5-like encoder on the GPU to fill in masked tokens"""

import torch
from torch import nn
from trainer import Trainer

VOCABULARY, WIDTH, HEADS, LAYERS, BATCH, LENGTH = 800, 64, 4, 12, 4, 24


class LayerNorm(nn.Module):
    """Without a mean and a bias"""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, hidden):
        variance = hidden.pow(2).mean(-1, keepdim=True)
        return self.weight * (hidden * torch.rsqrt(variance + 1e-6))


class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.layer_norm, self.dropout = LayerNorm(), nn.Dropout(0.1)

    def forward(self, hidden, position_bias):
        normed = self.layer_norm(hidden)
        shape = (hidden.shape[0], -1, HEADS, WIDTH // HEADS)
        q, k, v = (part(normed).view(shape).transpose(1, 2) for part in (self.q, self.k, self.v))
        scores = torch.matmul(q, k.transpose(3, 2)) + position_bias
        weights = self.dropout(torch.softmax(scores, dim=-1))
        context = torch.matmul(weights, v).transpose(1, 2).contiguous().view(hidden.shape)
        return hidden + self.dropout(self.o(context))


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.wi_0, self.wi_1 = (nn.Linear(WIDTH, 2 * WIDTH, bias=False) for _ in range(2))
        self.wo = nn.Linear(2 * WIDTH, WIDTH, bias=False)
        self.layer_norm, self.dropout = LayerNorm(), nn.Dropout(0.1)

    def forward(self, hidden):
        normed = self.layer_norm(hidden)
        gated = nn.functional.gelu(self.wi_0(normed)) * self.wi_1(normed)
        return hidden + self.dropout(self.wo(self.dropout(gated)))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.Embedding(VOCABULARY, WIDTH)
        self.position_bias = nn.Parameter(torch.zeros(1, HEADS, LENGTH, LENGTH))
        self.attention = nn.ModuleList(SelfAttention() for _ in range(LAYERS))
        self.feed_forward = nn.ModuleList(FeedForward() for _ in range(LAYERS))
        self.final_layer_norm = LayerNorm()
        self.lm_head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, input_ids, labels):
        hidden = self.shared(input_ids)
        for attention, feed_forward in zip(self.attention, self.feed_forward):
            hidden = feed_forward(attention(hidden, self.position_bias))
        logits = self.lm_head(self.final_layer_norm(hidden))
        return nn.functional.cross_entropy(logits.view(-1, VOCABULARY), labels.view(-1))


def batches():
    generator = torch.Generator().manual_seed(1)
    while True:
        labels = torch.randint(1, VOCABULARY, (BATCH, 1), generator=generator) + torch.arange(LENGTH)
        labels = labels % VOCABULARY
        masked = torch.rand(labels.shape, generator=generator) < 0.15
        yield {"input_ids": labels.masked_fill(masked, 0), "labels": labels}


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    trainer = Trainer(Encoder().cuda(), batches(), learning_rate=1e-3, logging_steps=100)
    print(f"mean loss {trainer.train(seconds=27.0):.4f}", flush=True)


if __name__ == "__main__":
    main()
