"""A memory bank of the features of patches without defects, and the distance of new patches to it"""

import torch
from torch import nn


class FeatureExtractor(nn.Module):
    """Features of two layers for each cell of a grid"""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 32, 7, stride=4, padding=3), nn.ReLU())
        self.layer2 = nn.Sequential(nn.Conv2d(32, 128, 3, stride=2, padding=1), nn.ReLU())
        self.layer3 = nn.Sequential(nn.Conv2d(128, 256, 3, stride=2, padding=1), nn.ReLU())

    def forward(self, images):
        second = self.layer2(self.stem(images))
        third = self.layer3(second)
        third = nn.functional.interpolate(third, size=second.shape[-2:], mode="bilinear")
        return torch.cat([second, third], 1)


class KCenterGreedy:
    """Takes the embeddings that are farthest from those taken so far"""

    def __init__(self, embeddings, count, dimensions=48):
        projection = torch.randn(embeddings.shape[1], dimensions) / dimensions**0.5
        self.features, self.count = embeddings @ projection, count

    def select(self):
        centre = int(torch.randint(0, len(self.features), (1,)))
        nearest, chosen = torch.full((len(self.features),), float("inf")), []
        for _ in range(self.count):
            distance = (self.features - self.features[centre]).square_().sum(1)
            torch.minimum(nearest, distance, out=nearest)
            chosen.append(centre)
            centre = int(nearest.argmax())
        return chosen


class PatchcoreModel(nn.Module):
    def __init__(self, extractor):
        super().__init__()
        self.feature_extractor, self.pooler = extractor, nn.AvgPool2d(3, 1, 1)
        self.embedding_store = []
        self.register_buffer("memory_bank", torch.empty(0))

    def forward(self, images):
        features = self.pooler(self.feature_extractor(images))
        embedding = features.permute(0, 2, 3, 1).reshape(-1, features.shape[1])
        if self.training:
            self.embedding_store.append(embedding)
            return embedding
        distances = torch.cdist(embedding, self.memory_bank).min(1).values
        return distances.view(len(images), -1).max(1).values

    def subsample_embedding(self, count):
        """Makes the memory bank of the embeddings of the training set"""
        embeddings = torch.vstack(self.embedding_store)
        self.embedding_store.clear()
        self.memory_bank = embeddings[KCenterGreedy(embeddings, count).select()]
