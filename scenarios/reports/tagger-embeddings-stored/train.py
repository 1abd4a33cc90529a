"""Trains the tagger for an epoch; embeddings are computed once per token and stored in main memory."""

import time

import torch
from nlp import CharacterLanguageModel, FlairEmbeddings, corpus
from torch import nn

SECONDS = 28.0


class SequenceTagger(nn.Module):
    def __init__(self, embeddings, width, tags=2):
        super().__init__()
        self.embeddings = embeddings
        self.rnn = nn.LSTM(width, 192, batch_first=True, bidirectional=True)
        self.head = nn.Linear(384, tags)

    def forward_loss(self, sentences):
        for embedding in self.embeddings:
            embedding.embed(sentences)
        rows = [
            torch.stack([torch.cat([token.embeddings[e.name] for e in self.embeddings]) for token in sentence.tokens])
            for sentence in sentences
        ]
        tags = [torch.tensor([token.tag for token in sentence.tokens]) for sentence in sentences]
        padded = nn.utils.rnn.pad_sequence(rows, batch_first=True)
        goals = nn.utils.rnn.pad_sequence(tags, batch_first=True, padding_value=-100)
        return nn.functional.cross_entropy(self.head(self.rnn(padded)[0]).flatten(0, 1), goals.flatten())


class ModelTrainer:
    def __init__(self, model, sentences):
        self.model, self.sentences = model, sentences

    def train(self, mini_batch_size, learning_rate, embeddings_storage_mode):
        optimizer = torch.optim.SGD(self.model.parameters(), lr=learning_rate)
        end = time.monotonic() + SECONDS
        for start in range(0, len(self.sentences), mini_batch_size):
            batch = self.sentences[start : start + mini_batch_size]
            loss = self.model.forward_loss(batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if embeddings_storage_mode == "none":
                for sentence in batch:
                    for token in sentence.tokens:
                        token.embeddings.clear()
            if start // mini_batch_size % 25 == 0:
                print(f"sentence {start} loss {loss.item():.3f}", flush=True)
            if time.monotonic() > end:
                break


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    forward, backward = CharacterLanguageModel(), CharacterLanguageModel()
    embeddings = [FlairEmbeddings("news-forward", forward), FlairEmbeddings("news-backward", backward)]
    tagger = SequenceTagger(embeddings, forward.hidden + backward.hidden)
    ModelTrainer(tagger, corpus(40_000, seed=1)).train(16, 0.1, embeddings_storage_mode="cpu")


if __name__ == "__main__":
    main()
