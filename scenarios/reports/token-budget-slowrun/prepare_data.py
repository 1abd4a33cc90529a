"""Tokenizes a stream of documents up to a budget of tokens"""

import numpy as np

END_OF_TEXT = 65_535


class Tokenizer:
    """Merges of all pairs of bytes"""

    def __init__(self):
        self.merges = np.random.default_rng(0).permutation(65_000).astype(np.uint16)

    def encode_ordinary(self, text):
        data = np.frombuffer(text.encode("ascii", "replace"), np.uint8).astype(np.uint32)
        pairs = data[: len(data) // 2 * 2].reshape(-1, 2)
        return self.merges[(pairs[:, 0] * 256 + pairs[:, 1]) % len(self.merges)].tolist()


def tokenize_documents(documents, tokenizer, token_budget):
    tokens, starts = [], []
    for document in documents:
        document_tokens = [END_OF_TEXT, *tokenizer.encode_ordinary(document["text"])]
        keep = min(len(document_tokens), token_budget - len(tokens))
        starts.append(len(tokens))
        tokens.extend(document_tokens[:keep])
        if len(starts) % 100 == 0:
            print(f"{len(starts)} documents, {len(tokens) / 1e6:.1f}M tokens", flush=True)
        if len(tokens) >= token_budget:
            break
    return np.array(tokens, dtype=np.uint16), np.array(starts, dtype=np.int64)
