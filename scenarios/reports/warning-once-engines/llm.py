"""A small engine: settings, layers with their part of the KV cache, and generation by blocks"""

import dataclasses

import torch
from platform_cpu import current_platform
from torch import nn

VOCABULARY, WIDTH, HEADS, LAYERS = 3000, 256, 8, 4


@dataclasses.dataclass
class VllmConfig:
    block_size: int
    max_num_seqs: int
    max_model_len: int = 256
    kv_cache_dtype: str = "auto"
    static_forward_context: dict = dataclasses.field(default_factory=dict)


class Attention(nn.Module):
    def __init__(self, vllm_config, prefix, kernel):
        super().__init__()
        self.qkv, self.out, self.kernel = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH), kernel
        self.kv_cache = None
        vllm_config.static_forward_context[prefix] = self

    def bind(self, slots, length):
        self.kv_cache = torch.zeros(2, slots, length, HEADS, WIDTH // HEADS)

    def forward(self, x, position):
        """One token for each sequence"""
        query, key, value = self.qkv(x).view(len(x), 3, HEADS, -1).unbind(1)
        self.kv_cache[0, : len(x), position] = key
        self.kv_cache[1, : len(x), position] = value
        keys, values = self.kv_cache[:, : len(x), : position + 1]
        return self.out(self.kernel(query[:, None], keys, values))


class Model(nn.Module):
    def __init__(self, vllm_config, kernel):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.attentions = nn.ModuleList(Attention(vllm_config, f"layers.{n}.attn", kernel) for n in range(LAYERS))
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(LAYERS))

    def forward(self, tokens, position):
        x = self.embedding(tokens)
        for attention, norm in zip(self.attentions, self.norms, strict=True):
            x = x + attention(norm(x), position)
        return x @ self.embedding.weight.T


class LLM:
    def __init__(self, **engine_args):
        self.vllm_config = VllmConfig(**engine_args)
        kernel = current_platform.import_kernels(self.vllm_config)
        torch.manual_seed(0)
        self.model = Model(self.vllm_config, kernel).eval()
        blocks = -(-self.vllm_config.max_model_len // self.vllm_config.block_size)
        for layer in self.vllm_config.static_forward_context.values():
            layer.bind(self.vllm_config.max_num_seqs, blocks * self.vllm_config.block_size)

    @torch.inference_mode()
    def generate(self, prompts, max_tokens):
        """Continues the prompts, which are equally long"""
        tokens, taken = prompts[:, 0], [prompts[:, 0]]
        for position in range(min(prompts.shape[1] + max_tokens, self.vllm_config.max_model_len) - 1):
            logits = self.model(tokens, position)
            following = position + 1
            tokens = prompts[:, following] if following < prompts.shape[1] else logits.argmax(-1)
            taken.append(tokens)
        return torch.stack(taken, 1)
