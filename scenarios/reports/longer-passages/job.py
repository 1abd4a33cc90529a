"""Training of a reader on passages of very different length: memory peaks with each longer one, and then no higher."""

import torch

STEPS = 300


class DialogQA(torch.nn.Module):
    def __init__(self, vocabulary=4000, width=96):
        super().__init__()
        self.embed = torch.nn.Embedding(vocabulary, width)
        self.encode = torch.nn.Linear(width, width)
        self.attend = torch.nn.MultiheadAttention(width, 4, batch_first=True)
        self.span = torch.nn.Linear(width, 2)

    def forward(self, passage):
        hidden = torch.relu(self.encode(self.embed(passage)))
        hidden = hidden + self.attend(hidden, hidden, hidden)[0]
        return self.span(hidden).transpose(1, 2)


def passage_lengths():
    """As a shuffled corpus has them: most are short, and a longer one comes now and then, the longest at step 125."""
    generator = torch.Generator().manual_seed(3)
    longest = {20: 320, 45: 440, 70: 560, 100: 680, 125: 800, 170: 640, 210: 790, 260: 720}
    for step in range(STEPS):
        yield longest.get(step, int(torch.randint(120, 300, (1,), generator=generator)))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = DialogQA()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for step, length in enumerate(passage_lengths()):
        passage = torch.randint(0, 4000, (10, length))
        answer = torch.randint(0, length, (10, 2))
        scores = model(passage)
        loss = sum(torch.nn.functional.cross_entropy(scores[:, end], answer[:, end]) for end in (0, 1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 0:
            print(f"step {step}: {length} tokens, loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
