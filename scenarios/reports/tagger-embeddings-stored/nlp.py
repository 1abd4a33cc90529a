"""Sentences, tokens and their embeddings."""

import random

import torch
from torch import nn

ALPHABET = "abcdefghijklmnopqrstuvwxyz "


class Token:
    __slots__ = ("text", "tag", "embeddings")

    def __init__(self, text, tag):
        self.text, self.tag, self.embeddings = text, tag, {}

    def set_embedding(self, name, vector):
        self.embeddings[name] = vector


class Sentence:
    def __init__(self, words):
        self.tokens = [Token(word, int(word[0] in "aeiou")) for word in words]

    def to_plain_string(self):
        return " ".join(token.text for token in self.tokens)


def corpus(count, seed):
    choose = random.Random(seed)
    pool = ["".join(choose.choices(ALPHABET[:-1], k=choose.randint(3, 11))) for _ in range(3000)]
    return [Sentence(choose.choices(pool, k=choose.randint(6, 24))) for _ in range(count)]


class CharacterLanguageModel(nn.Module):
    def __init__(self, hidden=96):
        super().__init__()
        self.embedding = nn.Embedding(len(ALPHABET), 48)
        self.rnn = nn.GRU(48, hidden)
        self.hidden = hidden

    def get_representation(self, texts):
        longest = max(len(text) for text in texts)
        codes = torch.tensor([[ALPHABET.index(c) for c in text.ljust(longest)] for text in texts]).T
        return self.rnn(self.embedding(codes))[0]


class FlairEmbeddings:
    def __init__(self, name, model):
        self.name, self.model = name, model.eval()

    @torch.no_grad()
    def embed(self, sentences):
        if all(self.name in token.embeddings for sentence in sentences for token in sentence.tokens):
            return
        states = self.model.get_representation([sentence.to_plain_string() for sentence in sentences])
        for number, sentence in enumerate(sentences):
            offset = 0
            for token in sentence.tokens:
                offset += len(token.text)
                token.set_embedding(self.name, states[offset - 1, number])
                offset += 1
