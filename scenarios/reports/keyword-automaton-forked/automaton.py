"""Searches texts for many keywords at once; a keyword is three tokens, and has any object as its value"""

import numpy as np


class Automaton:
    def __init__(self, vocabulary):
        self.vocabulary, self.keys, self.values = vocabulary, [], []

    def add_word(self, key, value):
        self.keys.append(key)
        self.values.append(value)

    def make_automaton(self):
        keys = np.array(self.keys, np.int64)
        order = np.argsort(keys, kind="stable")
        self.keys = keys[order]
        self.values = [self.values[index] for index in order.tolist()]

    def key(self, tokens):
        """The keys of all places in the text"""
        first, second, third = tokens[:-2], tokens[1:-1], tokens[2:]
        return (first * self.vocabulary + second) * self.vocabulary + third

    def iter(self, tokens):
        """Yields the place of each keyword's end, and its value"""
        keys = self.key(tokens)
        places = np.searchsorted(self.keys, keys).clip(max=len(self.keys) - 1)
        ends = np.flatnonzero(self.keys[places] == keys)
        for end, place in zip((ends + 2).tolist(), places[ends].tolist(), strict=True):
            yield end, self.values[place]
