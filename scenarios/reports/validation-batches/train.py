"""Translation by a recurrent encoder and decoder; a validation pass in large batches follows each epoch."""

import torch

VOCABULARY, SIZE = 1200, 96
EPOCHS, STEPS = 12, 16


class NMTModel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, SIZE)
        self.encoder = torch.nn.GRU(SIZE, SIZE, batch_first=True)
        self.decoder = torch.nn.GRU(SIZE, SIZE, batch_first=True)
        self.generator = torch.nn.Linear(SIZE, VOCABULARY)

    def forward(self, src, tgt):
        _, state = self.encoder(self.embedding(src))
        out, _ = self.decoder(self.embedding(tgt), state)
        return self.generator(out)


class Statistics:
    def __init__(self):
        self.loss = self.words = self.right = 0

    def update(self, loss, scores, target):
        self.loss += loss.item() * target.numel()
        self.words += target.numel()
        self.right += (scores.argmax(2) == target).sum().item()

    def __str__(self):
        return f"loss {self.loss / self.words:.3f} accuracy {100 * self.right / self.words:.2f}"


def batch(size, generator):
    src = torch.randint(VOCABULARY, (size, 24), generator=generator)
    return src, src.flip(1)


def compute_loss(model, src, tgt):
    scores = model(src, tgt)
    return torch.nn.functional.cross_entropy(scores.flatten(0, 1), tgt.flatten()), scores


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(2)
    model = NMTModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        model.train()
        stats = Statistics()
        for _ in range(STEPS):
            src, tgt = batch(64, generator)
            loss, scores = compute_loss(model, src, tgt)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            stats.update(loss.detach(), scores.detach(), tgt)
            del loss, scores
        model.eval()
        valid = Statistics()
        with torch.no_grad():
            for _ in range(3):
                src, tgt = batch(512, generator)
                valid.update(*compute_loss(model, src, tgt), tgt)
        print(f"epoch {epoch}: train {stats}, validation {valid}", flush=True)


if __name__ == "__main__":
    main()
