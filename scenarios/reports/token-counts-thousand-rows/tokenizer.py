"""A tokenizer by words and pieces of long words"""

import re
import zlib

PIECES = re.compile(r"\w{1,6}|[^\w\s]")
SPECIAL, VOCABULARY = 300, 50000


class BatchEncoding(dict):
    pass


class Tokenizer:
    def encode(self, text):
        return [SPECIAL + zlib.crc32(piece.encode()) % VOCABULARY for piece in PIECES.findall(text)]

    def __call__(self, texts, add_special_tokens=True):
        begin, end = ([1], [2]) if add_special_tokens else ([], [])
        input_ids = [begin + self.encode(text) + end for text in texts]
        return BatchEncoding(input_ids=input_ids, attention_mask=[[1] * len(ids) for ids in input_ids])
