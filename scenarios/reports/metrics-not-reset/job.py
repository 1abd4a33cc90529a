"""Segmentation of aerial images into land cover classes, with the intersection over union after each epoch."""

import torch

EPOCHS = 6
CLASSES = 6


class AerialTiles(torch.utils.data.Dataset):
    """Tiles with four bands, and the class of each pixel."""

    def __init__(self, count, first=0, size=144):
        self.count, self.first, self.size = count, first, size

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(self.first + index)
        coarse = torch.randint(0, CLASSES, (1, 1, 9, 9), generator=generator).float()
        mask = torch.nn.functional.interpolate(coarse, size=self.size)[0, 0].long()
        bands = mask[None] * torch.tensor([0.2, -0.1, 0.3, 0.05])[:, None, None]
        return bands + 0.3 * torch.randn(4, self.size, self.size, generator=generator), mask


class Metric:
    """States that are lists: what update() is given is kept until compute() concatenates it."""

    def __init__(self, classes):
        self.classes = classes
        self.reset()

    def reset(self):
        self.preds, self.target = [], []

    def update(self, preds, target):
        self.preds.append(preds)
        self.target.append(target)

    def compute(self):
        inter, union = torch.zeros(self.classes), torch.zeros(self.classes)
        for preds, target in zip(self.preds, self.target):
            for number in range(self.classes):
                one, other = preds == number, target == number
                inter[number] += (one & other).sum()
                union[number] += (one | other).sum()
        return inter / union.clamp(min=1)


class SegmentationTask:
    def __init__(self):
        layers = [torch.nn.Conv2d(4, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(16, CLASSES, 3, padding=1)]
        self.model = torch.nn.Sequential(*layers)
        self.optimizer = torch.optim.Adam(self.model.parameters(), 1e-2)
        self.iou_classwise_metric = Metric(CLASSES)

    def training_step(self, image, mask):
        loss = torch.nn.functional.cross_entropy(self.model(image), mask)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def validation_step(self, image, mask):
        self.iou_classwise_metric.update(self.model(image).argmax(dim=1).to(torch.uint8), mask)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    task = SegmentationTask()
    train = torch.utils.data.DataLoader(AerialTiles(96), 16, shuffle=True, num_workers=2)
    val = torch.utils.data.DataLoader(AerialTiles(384, 10_000), 16, num_workers=2)
    for epoch in range(EPOCHS):
        losses = [task.training_step(image, mask) for image, mask in train]
        for image, mask in val:
            task.validation_step(image, mask)
        iou = task.iou_classwise_metric.compute()
        print(f"epoch {epoch}: loss {sum(losses) / len(losses):.3f}, iou {iou.mean():.3f}", flush=True)


if __name__ == "__main__":
    main()
