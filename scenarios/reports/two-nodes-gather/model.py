"""The model under evaluation, as the evaluator knows it: a rank, a number of ranks, and answers to requests"""

import os
import time

import torch
from torch import nn

PATCHES, PATCH, WIDTH, ANSWERS = 256, 588, 256, 4
REQUEST_S = 0.15


class Accelerator:
    def __init__(self):
        self.local_process_index = int(os.environ["LOCAL_RANK"])
        self.process_index = int(os.environ["RANK"])
        self.num_processes = int(os.environ["WORLD_SIZE"])


class VisionLanguageModel:
    def __init__(self):
        accelerator = Accelerator()
        self._rank, self._world_size = accelerator.local_process_index, accelerator.num_processes
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True)
        self.patches = nn.Linear(PATCH, WIDTH)
        self.tower = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).eval()
        self.head = nn.Linear(WIDTH, ANSWERS)

    @property
    def rank(self):
        return self._rank

    @property
    def world_size(self):
        return self._world_size

    @torch.inference_mode()
    def generate_until(self, document):
        """The answer to a question about an image: the mean over crops, as many as there is time for"""
        generator = torch.Generator().manual_seed(document)
        image = torch.randn(PATCHES, PATCH, generator=generator)
        until, logits, crops = time.monotonic() + REQUEST_S, torch.zeros(ANSWERS), 0
        while crops == 0 or time.monotonic() < until:
            features = self.tower(self.patches(image.roll(crops, 0)[: PATCHES // 2])[None])
            logits = logits + self.head(features[0].mean(0))
            crops += 1
        return "ABCD"[int(logits.argmax())]
