"""Trains a recognizer of speech on batches with a number of frames each"""

import random
import time

import torch
from torch import nn

torch.set_num_threads(1)
SECONDS, BATCH_S, BINS, FEATURES, WIDTH, HEADS, VOCABULARY = 38.0, 0.12, 2000, 80, 144, 4, 1000
LENGTHS = (180, 220, 260, 310, 360, 420, 480, 560, 640, 720, 800, 880)


class EncoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.feed = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.SiLU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x):
        batch, frames, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, frames, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        mixed = torch.softmax(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, dim=-1) @ v
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, frames, WIDTH))
        return x + self.feed(self.norm2(x))


class ASRModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(FEATURES, WIDTH)
        self.layers = nn.ModuleList([EncoderLayer() for _ in range(2)])
        self.ctc = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, speech, text):
        x = self.embed(speech)
        for layer in self.layers:
            x = layer(x)
        ys_hat = self.ctc(x)
        logp = ys_hat.log_softmax(-1).transpose(0, 1)
        frames = torch.full((len(speech),), speech.shape[1])
        tokens = torch.full((len(text),), text.shape[1])
        loss = nn.functional.ctc_loss(logp, text, frames, tokens)
        return loss, {"loss": loss.detach(), "ys_hat": ys_hat}, len(speech)


class Iterator:
    """Batches that are sorted by length and then shuffled"""

    def __init__(self):
        self.source, self.generator = random.Random(3), torch.Generator().manual_seed(3)

    def __iter__(self):
        lengths = list(LENGTHS)
        self.source.shuffle(lengths)
        for length in lengths:
            size = max(1, BINS // length)
            speech = torch.randn((size, length, FEATURES), generator=self.generator)
            text = torch.randint(1, VOCABULARY, (size, length // 12), generator=self.generator)
            yield {"speech": speech, "text": text}


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), 5e-4)

    def train_one_epoch(self, iterator):
        total, utterances = 0.0, 0
        for batch in iterator:
            until = time.monotonic() + BATCH_S
            while True:
                retval = self.model(**batch)
                loss, stats, weight = retval
                self.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
                self.optimizer.step()
                if time.monotonic() > until:
                    break
            total += stats["loss"].item() * weight
            utterances += weight
        return total / utterances, utterances


def main():
    torch.manual_seed(0)
    trainer, iterator = Trainer(ASRModel()), Iterator()
    started, epoch = time.monotonic(), 0
    while time.monotonic() - started < SECONDS:
        loss, utterances = trainer.train_one_epoch(iterator)
        epoch += 1
        print(f"{epoch}epoch: {utterances} utterances, loss {loss:.4f}", flush=True)


if __name__ == "__main__":
    main()
