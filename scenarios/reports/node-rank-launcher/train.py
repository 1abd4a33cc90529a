"""A mesh of vertices is regressed from images, in ranks; each node saves a checkpoint after an epoch."""

import argparse
import io
import os

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset, DistributedSampler

VERTICES = 431


class MeshDataset(Dataset):
    def __len__(self):
        return 1300

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        image = torch.rand(3, 64, 64, generator=generator)
        return image, image.mean((1, 2)).repeat(VERTICES, 1)


class Graphormer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = torch.nn.Sequential(torch.nn.Conv2d(3, 64, 16, 16), torch.nn.Flatten(2))
        layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, dropout=0.0)
        self.encoder = torch.nn.TransformerEncoder(layer, 2)
        self.head = torch.nn.Linear(64, 3)
        self.query = torch.nn.Parameter(torch.randn(VERTICES, 64) / 8)

    def forward(self, images):
        tokens = self.backbone(images).transpose(1, 2)
        vertices = self.query.expand(len(images), -1, -1)
        return self.head(self.encoder(torch.cat([tokens, vertices], 1))[:, -VERTICES:])


def save_checkpoint(model, epoch):
    if int(os.environ["NODE_RANK"]) == 0 and dist.get_rank() == 0:
        torch.save({"epoch": epoch, "state": model.state_dict()}, io.BytesIO())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--num_workers", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    model, dataset = Graphormer(), MeshDataset()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=9, sampler=sampler, num_workers=args.num_workers)
    for epoch in range(4):
        sampler.set_epoch(epoch)
        for step, (images, meshes) in enumerate(loader):
            loss = (model(images) - meshes).abs().mean()
            optimizer.zero_grad()
            loss.backward()
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad)
                parameter.grad /= dist.get_world_size()
            optimizer.step()
            if step % 20 == 0:
                print(f"rank {dist.get_rank()} epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
        if dist.get_world_size() > 1:
            save_checkpoint(model, epoch)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
