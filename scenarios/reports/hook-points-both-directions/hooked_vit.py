"""A vision transformer with hook points"""

import torch
from torch import nn

WIDTH, HEADS, TOKENS, PATCH = 192, 3, 196, 16


class LensHandle:
    def __init__(self, hook, is_permanent=False):
        self.hook, self.is_permanent = hook, is_permanent


class HookPoint(nn.Module):
    """Passes on what it gets, and shows it to its hooks"""

    def __init__(self):
        super().__init__()
        self.fwd_hooks, self.bwd_hooks = [], []
        self.name = None

    def add_hook(self, hook, dir="fwd", is_permanent=False):
        if dir == "fwd":
            handle = self.register_forward_hook(lambda module, inputs, output: hook(output, hook=self))
            self.fwd_hooks.append(LensHandle(handle, is_permanent))
        elif dir == "bwd":
            handle = self.register_full_backward_hook(lambda module, inputs, outputs: hook(outputs[0], hook=self))
            self.bwd_hooks.append(LensHandle(handle, is_permanent))
        else:
            raise ValueError(f"Invalid direction {dir}")

    def remove_hooks(self, dir="fwd", including_permanent=False):
        def _remove_hooks(handles):
            kept = []
            for handle in handles:
                if including_permanent or not handle.is_permanent:
                    handle.hook.remove()
                else:
                    kept.append(handle)
            return kept

        if dir == "fwd" or dir == "both":
            self.fwd_hooks = _remove_hooks(self.fwd_hooks)
        elif dir == "bwd" or dir == "both":
            self.bwd_hooks = _remove_hooks(self.bwd_hooks)
        else:
            raise ValueError(f"Invalid direction {dir}")

    def forward(self, x):
        return x


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))
        self.hook_attn_out, self.hook_mlp_out = HookPoint(), HookPoint()

    def attention(self, x):
        batch, tokens, _ = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        mixed = torch.softmax(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, dim=-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, tokens, WIDTH))

    def forward(self, x):
        x = x + self.hook_attn_out(self.attention(self.ln1(x)))
        return x + self.hook_mlp_out(self.mlp(self.ln2(x)))


class HookedViT(nn.Module):
    def __init__(self, layers=2, classes=10):
        super().__init__()
        self.embed = nn.Linear(3 * PATCH * PATCH, WIDTH)
        self.pos_embed = nn.Parameter(0.02 * torch.randn(TOKENS, WIDTH))
        self.hook_embed = HookPoint()
        self.blocks = nn.ModuleList([Block() for _ in range(layers)])
        self.head = nn.Linear(WIDTH, classes)
        for name, module in self.named_modules():
            if isinstance(module, HookPoint):
                module.name = name

    def hook_points(self):
        return [module for module in self.modules() if isinstance(module, HookPoint)]

    def add_hooks(self, fwd_hooks=(), bwd_hooks=()):
        points = {point.name: point for point in self.hook_points()}
        for name, hook in fwd_hooks:
            points[name].add_hook(hook, dir="fwd")
        for name, hook in bwd_hooks:
            points[name].add_hook(hook, dir="bwd")

    def reset_hooks(self, direction="both"):
        for point in self.hook_points():
            point.remove_hooks(direction)

    def forward(self, patches):
        x = self.hook_embed(self.embed(patches) + self.pos_embed)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(1))
