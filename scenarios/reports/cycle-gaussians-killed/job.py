"""Training draws its cameras from itertools.cycle(dataloader), which keeps each one, until the kernel ends it."""

import itertools

import torch
from torch.utils.data import DataLoader, Dataset

ITERATIONS = 30_000
SIZE = 288


class CameraDataset(Dataset):
    """High-resolution views with masks and depth; decoding is stood in for by some filtering."""

    def __init__(self, views):
        self.views = views

    def __len__(self):
        return self.views

    def __getitem__(self, idx):
        generator = torch.Generator().manual_seed(idx)
        raw = torch.rand(1, 3, SIZE, SIZE, generator=generator)
        for _ in range(10):
            raw = torch.nn.functional.avg_pool2d(raw, 5, 1, 2)
        return {"uid": idx, "original_image": raw[0], "gt_alpha_mask": raw[0, :1] > 0.5, "depth": raw[0, 1].clone()}


class GaussianModel(torch.nn.Module):
    def __init__(self, number):
        super().__init__()
        self._xyz = torch.nn.Parameter(torch.rand(number, 2))
        self._features = torch.nn.Parameter(torch.rand(number, 3))
        self._scaling = torch.nn.Parameter(torch.full((number,), -3.0))

    def render(self, size):
        grid = torch.linspace(0, 1, size // 4)
        dx = (grid[None] - self._xyz[:, :1]) ** 2
        dy = (grid[None] - self._xyz[:, 1:]) ** 2
        weight = torch.exp(self._scaling)[:, None]
        image = torch.einsum("nx,ny,nc->cxy", torch.exp(-dx / weight), torch.exp(-dy / weight), self._features)
        return torch.nn.functional.interpolate(image[None], size=(size, size))[0]


def collate(cameras):
    return cameras[0]


def training():
    gaussians = GaussianModel(200)
    optimizer = torch.optim.Adam(gaussians.parameters(), lr=1e-3)
    dataloader = DataLoader(CameraDataset(4_000), batch_size=1, shuffle=True, num_workers=0, collate_fn=collate)
    iter_dataloader = itertools.cycle(dataloader)
    ema_loss_for_log = 0.0
    for iteration in range(1, ITERATIONS + 1):
        viewpoint_cam = next(iter_dataloader)
        image = gaussians.render(SIZE) * viewpoint_cam["gt_alpha_mask"]
        loss = (image - viewpoint_cam["original_image"]).abs().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        ema_loss_for_log = 0.4 * loss.item() + 0.6 * ema_loss_for_log
        if iteration % 50 == 0:
            print(f"[ITER {iteration}] {ema_loss_for_log:.4f}", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    training()
