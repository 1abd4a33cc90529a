"""Stage A: captures what each linear layer sees of the calibration text, and the cost of each format for it"""

import time

import torch
from kernel_time import KernelTimeProfiler
from torch import nn

torch.set_num_threads(1)
ROWS, LENGTH, WIDTH, LAYERS, HEADS, WORDS, ROW_S = 80, 48, 64, 8, 4, 2000, 0.13
FORMATS = {"int8": 127, "int6": 31, "int4": 7}


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        parts = self.qkv(self.norm1(x)).view(*x.shape[:2], 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Capture:
    """The mean of the squared inputs of each linear layer, for the weights of its error"""

    def __init__(self, model):
        self.squares = {}
        self.handles = [
            module.register_forward_pre_hook(self.hook(name))
            for name, module in model.named_modules()
            if isinstance(module, nn.Linear)
        ]

    def hook(self, name):
        def capture(module, args):
            square = args[0].detach().square().mean((0, 1))
            if name in self.squares:
                self.squares[name].add_(square)
            else:
                self.squares[name] = square

        return capture

    def remove(self):
        for handle in self.handles:
            handle.remove()


def costs(model, squares):
    modules, found = dict(model.named_modules()), {}
    for name, square in squares.items():
        weight = modules[name].weight
        for label, levels in FORMATS.items():
            scale = weight.abs().amax(1, keepdim=True) / levels
            error = weight - (weight / scale).round() * scale
            found[name, label] = (error.square() * square).sum().item()
    return found


def main():
    torch.manual_seed(0)
    embed = nn.Embedding(WORDS, WIDTH)
    model = nn.Sequential(*[Block() for _ in range(LAYERS)]).eval()
    capture, profiler = Capture(model), KernelTimeProfiler()
    begin = time.monotonic()
    profiler.start()
    try:
        with torch.no_grad():
            for row in range(1, ROWS + 1):
                tokens = torch.randint(0, WORDS, (1, LENGTH))
                model(embed(tokens))
                # The checksum of the row for the log of the run
                digest = 0
                while time.monotonic() < begin + row * ROW_S:
                    digest = hash((digest, row)) & 0xFFFF
                if row % 10 == 0:
                    print(f"captured {row} of {ROWS} rows, {digest:04x}", flush=True)
    finally:
        print("profiler_stop", flush=True)
        profiler.stop()
        capture.remove()
    for line in profiler.report():
        print(line, flush=True)
    with torch.no_grad():
        found = costs(model, capture.squares)
    worst = max(found, key=found.get)
    print(f"{len(found)} costs, the largest {worst}: {found[worst]:.5f}", flush=True)


if __name__ == "__main__":
    main()
