"""What the platform offers: compiled kernels, if the build has them, or those of torch"""

import importlib

import torch
from logger import init_logger
from torch import nn

logger = init_logger("engine.platform")


class CpuPlatform:
    kernel_package = "engine_C"

    def import_kernels(self, vllm_config):
        """The attention for these settings"""
        name = f"{self.kernel_package}.attention_{vllm_config.kv_cache_dtype}"
        try:
            return importlib.import_module(name).paged_attention
        except ImportError as e:
            logger.warning_once("Failed to import from %s: %r", name, e)
        return self.torch_attention

    @staticmethod
    def torch_attention(query, keys, values):
        heads = query.shape[-2]
        query, keys, values = (x.transpose(-3, -2) for x in (query, keys, values))
        out = nn.functional.scaled_dot_product_attention(query, keys, values)
        return out.transpose(-3, -2).reshape(-1, heads * out.shape[-1])


current_platform = CpuPlatform()
torch.set_num_threads(1)
