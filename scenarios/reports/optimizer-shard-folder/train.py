"""Pretrains a small language model on two ranks; each rank has the optimizer of half of the parameters"""

import os
import time

import torch
import torch.distributed as dist
from checkpoints import save_checkpoint
from torch import nn

torch.set_num_threads(1)
WORDS, LENGTH, WIDTH, LAYERS, BATCH, STEPS, STEP_S = 256, 64, 96, 3, 6, 210, 0.1
SAMPLE_S = 3.0


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        parts = self.qkv(self.norm1(x)).view(*x.shape[:2], 3, 4, WIDTH // 4).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(nn.functional.relu(self.up(self.norm2(x))).square())


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1])
        return self.head(self.blocks(self.words(tokens) + self.places(places)))


def batch(source):
    starts = torch.randint(0, WORDS, (BATCH, 1), generator=source)
    strides = torch.randint(1, 6, (BATCH, 1), generator=source)
    return (starts + strides * torch.arange(LENGTH + 1)) % WORDS


def sample(model, seconds):
    """Continues a few prompts, to see how the model does"""
    until, text = time.monotonic() + seconds, torch.randint(0, WORDS, (4, 8))
    while time.monotonic() < until:
        chances = model(text[:, -LENGTH:])[:, -1].softmax(-1)
        text = torch.cat([text, torch.multinomial(chances, 1)], 1)
    return text[0, :16].tolist()


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model, source = Model(), torch.Generator().manual_seed(rank)
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters[rank::world], lr=1e-3)
    sizes = [parameter.numel() for parameter in parameters]
    gradients = torch.empty(sum(sizes))
    weights = [torch.empty(sum(sizes[owner::world])) for owner in range(world)]
    until = time.monotonic()
    for step in range(1, STEPS + 1):
        until += STEP_S
        tokens = batch(source)
        loss = nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        model.zero_grad(set_to_none=False)
        loss.backward()
        torch.cat([parameter.grad.flatten() for parameter in parameters], out=gradients)
        dist.all_reduce(gradients)
        for parameter, part in zip(parameters, gradients.split(sizes)):
            torch.div(part.view_as(parameter), world, out=parameter.grad)
        optimizer.step()
        for owner, whole in enumerate(weights):
            own = parameters[owner::world]
            if rank == owner:
                torch.cat([parameter.detach().flatten() for parameter in own], out=whole)
            dist.broadcast(whole, owner)
            for parameter, part in zip(own, whole.split([one.numel() for one in own])):
                parameter.detach().copy_(part.view_as(parameter))
        with torch.no_grad():
            while time.monotonic() < until:
                model(tokens[:2, :-1])
        if rank == 0 and step % 30 == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
    if rank == 0:
        with torch.no_grad():
            print(f"sampled {sample(model, SAMPLE_S)}", flush=True)
    folder = os.path.join("base_checkpoints", f"d{LAYERS}")
    save_checkpoint(folder, STEPS, model.state_dict(), optimizer.state_dict(), rank)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
