"""The application: a text classifier over word vectors that it builds when it is created."""

import numpy as np
import torch
from torch import nn

WORDS, WIDTH = 260_000, 192


class Vocabulary:
    def __init__(self):
        self.index = {f"word{n:07d}": n for n in range(WORDS)}

    def __call__(self, text):
        return [self.index.get(word, hash(word) % WORDS) for word in text.split()]


class Classifier(nn.Module):
    def __init__(self, vectors):
        super().__init__()
        self.embedding = nn.Embedding.from_pretrained(vectors)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 768, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, 5)

    def forward(self, ids):
        return self.head(self.encoder(self.embedding(ids))[:, 0])


def word_vectors():
    """Stands in for a text file of vectors, which is read word by word."""
    rng = np.random.default_rng(0)
    vectors = np.empty((WORDS, WIDTH), np.float32)
    for start in range(0, WORDS, 500):
        vectors[start : start + 500] = rng.normal(size=(500, WIDTH))
        vectors[start : start + 500] /= np.linalg.norm(vectors[start : start + 500], axis=1, keepdims=True)
    return torch.from_numpy(vectors)


def create_app():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    vocabulary, model = Vocabulary(), Classifier(word_vectors()).eval()

    @torch.inference_mode()
    def application(text):
        return str(model(torch.tensor([vocabulary(text)])).argmax().item())

    return application
