"""An image classifier in the way of a course: fit, then predict the test set with augmentation"""

import time
import zlib

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
SIZE, BATCH = 160, 16


class ImageFiles(Dataset):
    """Compressed pictures; a test set has targets of zero"""

    def __init__(self, count, is_test=False, augment=False):
        self.count, self.is_test, self.augment = count, is_test, augment
        generator = np.random.default_rng(11)
        self.files = []
        for label in range(24):
            coarse = generator.integers(0, 255, (16, 16, 3), dtype=np.uint8)
            picture = np.kron(coarse, np.ones((16, 16, 1), dtype=np.uint8))
            picture += generator.integers(0, 8, picture.shape, dtype=np.uint8)
            self.files.append(zlib.compress(picture.tobytes(), 1))

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        raw = np.frombuffer(bytearray(zlib.decompress(self.files[index % 24])), dtype=np.uint8)
        picture = torch.from_numpy(raw.reshape(256, 256, 3)).permute(2, 0, 1).float().unsqueeze(0)
        if self.augment:
            generator = np.random.default_rng(index)
            if generator.random() < 0.5:
                picture = picture.flip(3)
            left, top = generator.integers(0, 24, 2)
            picture = picture[:, :, top : top + 232, left : left + 232]
        picture = nn.functional.interpolate(picture, size=(SIZE, SIZE), mode="bicubic", antialias=True)[0]
        target = 0 if self.is_test else index % 24
        return (picture - 120.0) / 60.0, target


def to_np(tensor):
    return tensor.detach().cpu().numpy()


class Learner:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def fit(self, loader, seconds):
        self.model.train()
        started, losses = time.monotonic(), []
        for x, y in loader:
            self.optimizer.zero_grad()
            loss = nn.functional.cross_entropy(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
            if time.monotonic() - started > seconds:
                break
        print(f"{len(losses)} steps, loss {losses[-1]:.3f}", flush=True)

    @torch.no_grad()
    def predict_with_targs(self, loader):
        self.model.eval()
        res = []
        for x, y in loader:
            res.append([to_np(self.model(x).softmax(1)), to_np(y)])
            if len(res) % 25 == 0:
                print(f"batch {len(res)} of {len(loader)}", flush=True)
        predictions, targets = zip(*res)
        return np.concatenate(predictions), np.concatenate(targets)


def main():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 24, 5, stride=2), nn.ReLU(), nn.Conv2d(24, 48, 3, stride=2), nn.ReLU(),
        nn.Conv2d(48, 64, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 24),
    )
    learner = Learner(model)
    learner.fit(DataLoader(ImageFiles(4000), BATCH, shuffle=True, num_workers=2), seconds=4.0)
    test = DataLoader(ImageFiles(9000, is_test=True, augment=True), BATCH, num_workers=2)
    predictions, _ = learner.predict_with_targs(test)
    np.save("test_predictions.npy", predictions)
    print(f"predicted {len(predictions)} images", flush=True)


if __name__ == "__main__":
    main()
