"""
Segmentation of scans without labels: the features of superpoints are clustered every few epochs, and the network
learns to tell the clusters.
"""

import argparse
import time

import torch
from scenes import SUPERPOINTS, Scans
from torch import nn
from torch.utils.data import DataLoader

torch.set_num_threads(1)
WIDTH, PRIMITIVES, CLUSTER_EVERY, STEP_S = 64, 40, 5, 0.07


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, WIDTH))

    def forward(self, features):
        return nn.functional.normalize(self.layers(features), dim=-1)


def kmeans(features, count, rounds=12):
    centres = features[torch.randperm(len(features))[:count]]
    for _ in range(rounds):
        nearest = torch.cdist(features, centres).argmin(1)
        sums = torch.zeros_like(centres).index_add_(0, nearest, features)
        centres = sums / torch.bincount(nearest, minlength=count).clamp_min(1)[:, None]
    return nn.functional.normalize(centres, dim=1), torch.cdist(features, centres).argmin(1)


def cluster(args, scans, model):
    """Pseudo labels of all superpoints, from the mean features of their points in all scans"""
    print("computing pseudo labels...", flush=True)
    points, means, order = [], [], []
    with torch.no_grad():
        for features, superpoints, index in DataLoader(Scans(args.scenes, augment=False), 1):
            one = model(features[0])
            points.append(one)
            sums = torch.zeros(SUPERPOINTS, WIDTH).index_add_(0, superpoints[0], one)
            means.append(sums / torch.bincount(superpoints[0], minlength=SUPERPOINTS).clamp_min(1)[:, None])
            order.append(int(index))
        centres, labels = kmeans(torch.cat(means), PRIMITIVES)
        spread = torch.cat(points).var(0).mean().item()
    for index, one in zip(order, labels.split(SUPERPOINTS)):
        scans.pseudo_labels[index] = one
    print(f"clustered {len(labels)} superpoints, spread {spread:.4f}", flush=True)
    classifier = nn.Linear(WIDTH, PRIMITIVES, bias=False)
    classifier.weight.data.copy_(centres)
    return classifier.requires_grad_(False)


def train(loader, scans, model, optimizer, scheduler, classifier):
    total = 0.0
    for features, superpoints, index in loader:
        until = time.monotonic() + STEP_S
        labels = torch.stack([scans.pseudo_labels[int(one)][own] for one, own in zip(index, superpoints)])
        logits = 5 * classifier(model(features))
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item()
        # How well the labels agree, on as many samples of the points as there is time for
        with torch.no_grad():
            while time.monotonic() < until:
                rows = torch.randint(0, features.shape[1], (500,))
                classifier(model(features[0, rows])).argmax(1)
    return total / len(loader)


def main():
    parser = argparse.ArgumentParser()
    for name in ("scenes", "batch", "max-epoch", "max-iter"):
        parser.add_argument(f"--{name}", type=int, required=True)
    args = parser.parse_args()
    torch.manual_seed(0)
    scans = Scans(args.scenes, augment=True)
    loader = DataLoader(scans, args.batch, shuffle=True, num_workers=1, persistent_workers=True)
    model = Network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=args.max_iter)
    classifier = None
    for epoch in range(args.max_epoch):
        if epoch % CLUSTER_EVERY == 0:
            classifier = cluster(args, scans, model)
        loss = train(loader, scans, model, optimizer, scheduler, classifier)
        print(f"epoch {epoch + 1}/{args.max_epoch}: loss {loss:.4f}, lr {scheduler.get_last_lr()[0]:.5f}", flush=True)


if __name__ == "__main__":
    main()
