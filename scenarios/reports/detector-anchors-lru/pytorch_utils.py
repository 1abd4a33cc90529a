"""The part of transformers' pytorch_utils that the detectors need"""

import functools

import torch


def is_compiling():
    return torch.compiler.is_compiling()


def compile_compatible_method_lru_cache(*lru_args, **lru_kwargs):
    """An lru_cache for methods that steps aside while torch.compile traces."""

    def decorator(function):
        cached = functools.lru_cache(*lru_args, **lru_kwargs)(function)

        @functools.wraps(function)
        def wrapper(self, *args, **kwargs):
            if is_compiling():
                return function(self, *args, **kwargs)
            return cached(self, *args, **kwargs)

        return wrapper

    return decorator
