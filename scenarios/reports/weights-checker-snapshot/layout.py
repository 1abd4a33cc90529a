"""The shape of the policy: each layer has a half on each rank of the engine"""

import numpy as np

LAYERS, WIDTH, HALF, BUCKET_ROWS = 13, 1024, 1024, 512


def initial_half(layer, rank):
    """What the checkpoint has of a layer for a rank"""
    return np.random.default_rng((layer, rank)).standard_normal((HALF, WIDTH), np.float32) / 32
