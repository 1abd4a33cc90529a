"""Robot episodes are streamed through a shuffle buffer in each worker, which fills for a while and then is full."""

import numpy as np
import torch

SHUFFLE_BUFFER = 4000
STEPS = 190


class RLDSDataset(torch.utils.data.IterableDataset):
    """Endless; each worker reads shards of its own and mixes their frames in a buffer."""

    def episodes(self, rng):
        while True:
            background = rng.integers(0, 255, (96, 96, 3), np.uint8)
            for step in range(24):
                yield {"image": np.roll(background, step, 1), "action": rng.standard_normal(7, np.float32)}

    def __iter__(self):
        rng = np.random.default_rng(torch.utils.data.get_worker_info().id)
        buffer = []
        for frame in self.episodes(rng):
            if len(buffer) < SHUFFLE_BUFFER:
                buffer.append(frame)
                if len(buffer) % 3:
                    continue  # a third of the frames goes on at once, so that training need not wait
                pick = int(rng.integers(len(buffer)))
                yield self.transform(buffer[pick])
                continue
            pick = int(rng.integers(SHUFFLE_BUFFER))
            chosen, buffer[pick] = buffer[pick], frame
            yield self.transform(chosen)

    @staticmethod
    def transform(frame):
        image = frame["image"].reshape(32, 3, 32, 3, 3).mean((1, 3), dtype=np.float32) / 255
        return torch.from_numpy(image).permute(2, 0, 1), torch.from_numpy(frame["action"])


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    loader = torch.utils.data.DataLoader(RLDSDataset(), batch_size=24, num_workers=2)
    layers = [torch.nn.Conv2d(3, 32, 5), torch.nn.ReLU(), torch.nn.Conv2d(32, 48, 5), torch.nn.ReLU()]
    policy = torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten(), torch.nn.Linear(192, 7))
    optimizer = torch.optim.AdamW(policy.parameters(), 1e-4)
    for step, (images, actions) in zip(range(STEPS), loader):
        for _ in range(2):
            loss = torch.nn.functional.l1_loss(policy(images), actions)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if step % 30 == 0:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
