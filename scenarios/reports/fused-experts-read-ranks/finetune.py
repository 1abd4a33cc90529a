"""Fine-tunes a mixture of experts; each rank has its part of the experts of each layer"""

import argparse
import time

import torch
import torch.distributed as dist
from config import MODELS, WIDTH, is_expert, tensors
from hf_storage import HuggingFaceStorageReader
from torch import nn

LENGTH, STEP_S = 24, 0.15


class ReduceFromRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Experts(nn.Module):
    """The weights are in bfloat16, the computation is in float32"""

    def __init__(self, model):
        super().__init__()
        rank, world = dist.get_rank(), dist.get_world_size()
        self.layers, experts = MODELS[model]["layers"], MODELS[model]["experts"]
        self.local, self.first = experts // world, rank * (experts // world)
        self.weights = nn.ParameterDict()
        for name, (rows, *rest) in tensors(model).items():
            rows = self.local if is_expert(name) else rows
            tensor = torch.empty(rows, *rest, dtype=torch.bfloat16)
            self.weights[name.replace(".", "/")] = nn.Parameter(tensor, requires_grad=is_expert(name))

    def get(self, name):
        return self.weights[name.replace(".", "/")]

    def requests(self):
        for name in self.weights:
            name = name.replace("/", ".")
            yield name, self.get(name).data, self.first if is_expert(name) else 0

    def forward(self, tokens):
        embedding = self.get("embed_tokens").float()
        x = embedding[tokens]
        for layer in range(self.layers):
            prefix = f"layers.{layer}.mlp"
            chosen = (x.detach() @ self.get(f"{prefix}.router").float().T).argmax(-1)
            gate_up, down = self.get(f"{prefix}.experts.gate_up_proj"), self.get(f"{prefix}.experts.down_proj")
            output = torch.zeros_like(x)
            for expert in range(self.local):
                here = (chosen == self.first + expert)[:, None]
                gate, up = (x.detach() @ gate_up[expert].float().T).chunk(2, -1)
                output = output + here * ((nn.functional.silu(gate) * up) @ down[expert].float().T)
            x = x + ReduceFromRanks.apply(output)
        return (x @ embedding.T) / WIDTH**0.5


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--path", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = Experts(options.model)
    reader = HuggingFaceStorageReader(options.path)
    dist.barrier()
    reader.read_data(model.requests())
    dist.barrier()
    print(f"rank {dist.get_rank()} has loaded {options.path}", flush=True)
    optimizer = torch.optim.SGD((weight for weight in model.parameters() if weight.requires_grad), lr=0.05)
    done, step, end = torch.zeros(1), 0, time.monotonic() + options.seconds
    generator = torch.Generator().manual_seed(0)
    while not done:
        until = time.monotonic() + STEP_S
        start = torch.randint(0, 8000, (1,), generator=generator)
        tokens = (start + 3 * torch.arange(LENGTH + 1)) % 8000
        loss = nn.functional.cross_entropy(model(tokens[:-1]), tokens[1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        # What time is left goes into a check of the embedding's neighbours.
        with torch.no_grad():
            while time.monotonic() < until:
                model.get("embed_tokens")[tokens].float().cov()
        step += 1
        done = torch.tensor([float(time.monotonic() > end)])
        dist.all_reduce(done, op=dist.ReduceOp.MAX)
        if dist.get_rank() == 0 and step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
