"""Pose regression: trains, and then validates with spawned workers and a transform that is a lambda in main()."""

import torch

EPOCHS = 4


class DrivingSequence(torch.utils.data.Dataset):
    """Frames along a road and the pose of each, six numbers."""

    def __init__(self, length, transform):
        self.length, self.transform = length, transform

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        pose = torch.rand(6, generator=generator)
        frame = torch.rand(3, 72, 72, generator=generator) * pose[:3, None, None] + pose[3:, None, None]
        return self.transform(frame), pose


def evaluate(model, loader):
    with torch.no_grad():
        errors = [(model(frames) - poses).norm(dim=1) for frames, poses in loader]
    return torch.cat(errors).median().item()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    crop = 64
    transform = lambda frame: (frame[:, :crop, :crop] - 0.5) / 0.25  # noqa: E731
    train_loader = torch.utils.data.DataLoader(DrivingSequence(1600, transform), 32, shuffle=True)
    layers = [torch.nn.Conv2d(3, 32, 5, 2), torch.nn.ReLU(), torch.nn.Conv2d(32, 64, 3), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(64, 6))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for epoch in range(EPOCHS):
        for frames, poses in train_loader:
            loss = torch.nn.functional.smooth_l1_loss(model(frames), poses)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}", flush=True)
    val_set = DrivingSequence(400, transform)
    val_loader = torch.utils.data.DataLoader(val_set, 32, num_workers=2, multiprocessing_context="spawn")
    print(f"median error {evaluate(model, val_loader):.3f}", flush=True)


if __name__ == "__main__":
    main()
