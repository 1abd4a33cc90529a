"""Inference through a layer with an autograd function of its own, which keeps its output on ctx; no backward."""

import gc

import torch

SCENES = 145


class SubmanifoldConvolutionFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input_features, weight, bias):
        ctx.output_features = input_features.clone()
        ctx.weight_shape = weight.shape
        torch.addmm(bias, input_features, weight, out=ctx.output_features)
        return ctx.output_features

    @staticmethod
    def backward(ctx, grad_output):
        return torch.mm(grad_output, torch.ones(ctx.weight_shape).t()), None, None


class SubmanifoldConvolution(torch.nn.Module):
    def __init__(self, planes):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(planes, planes) / planes**0.5)
        self.bias = torch.nn.Parameter(torch.zeros(planes))

    def forward(self, input_features):
        return SubmanifoldConvolutionFunction.apply(input_features, self.weight, self.bias)


class UNet(torch.nn.Module):
    def __init__(self, planes):
        super().__init__()
        self.first = SubmanifoldConvolution(planes)
        self.linear = torch.nn.Linear(planes, 20)

    def forward(self, points):
        return self.linear(torch.relu(self.first(points)))


def voxelize(scene):
    """The scene's points, sorted into voxels: what the reporter's data preparation does on the CPU."""
    points = torch.rand(70_000, 3, generator=torch.Generator().manual_seed(scene))
    for scale in (8, 12, 16, 20, 24, 28, 32, 40, 48, 64, 80, 96, 128):
        key = ((points * scale).long() * torch.tensor([scale * scale, scale, 1])).sum(1)
        _, inverse = torch.unique(key, return_inverse=True)
    rows = torch.zeros(int(inverse.max()) + 1, 3).index_add_(0, inverse, points)
    return rows.repeat(1, 6)[:, :16].contiguous()


def main():
    torch.set_num_threads(1)
    unet = UNet(16)
    unet.eval()
    checkpoint = {name: tensor.clone() for name, tensor in unet.state_dict().items()}
    unet.load_state_dict(checkpoint)
    del checkpoint
    gc.collect()
    hits = torch.zeros(20, dtype=torch.long)
    for scene in range(SCENES):
        predictions = unet(voxelize(scene))
        hits += torch.bincount(predictions.argmax(1), minlength=20)
        if scene % 10 == 0:
            print("scene", scene, hits.tolist(), flush=True)


if __name__ == "__main__":
    main()
