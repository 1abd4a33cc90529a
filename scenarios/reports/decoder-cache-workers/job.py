"""LeRobot's shape: a VideoDecoderCache in each loader worker, keyed by path, of which no decoder is ever dropped."""

import os
import tempfile
import time
from threading import Lock

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

EPISODES = 4000
CAMERAS = ("observation.images.front", "observation.images.wrist")


class VideoDecoder:
    """Stands in for torchcodec's: it holds an index of the file and the frames of the group that it decoded last."""

    def __init__(self, file_handle):
        file_handle.seek(0)
        header = np.frombuffer(file_handle.read(256), np.uint8)
        self.file_handle = file_handle
        self.index = np.arange(4000, dtype=np.int64) * 512 + int(header[0])
        self.key_frame = np.resize(header, (96, 128, 3)).astype(np.float32)
        self.decoded = np.empty((4, 96, 128, 3), np.float32)

    def get_frames_at(self, indices):
        for n in range(len(self.decoded)):
            drift = np.float32(np.sin(n + indices[0]))
            self.decoded[n] = np.sqrt(np.abs(self.key_frame * drift)) / 16
        return self.decoded[[i % len(self.decoded) for i in indices]]


def download(video_path):
    """The file comes from the hub when it is first needed."""
    if not os.path.exists(video_path):
        with open(video_path, "wb") as file:
            file.write(os.urandom(512))


class VideoDecoderCache:
    def __init__(self):
        self._cache: dict[str, tuple] = {}
        self._lock = Lock()

    def get_decoder(self, video_path):
        video_path = str(video_path)
        with self._lock:
            if video_path not in self._cache:
                download(video_path)
                file_handle = open(video_path, "rb")
                self._cache[video_path] = (VideoDecoder(file_handle), file_handle)
            return self._cache[video_path][0]


_default_decoder_cache = VideoDecoderCache()


def decode_video_frames(video_path, timestamps):
    decoder = _default_decoder_cache.get_decoder(video_path)
    frames = decoder.get_frames_at([round(ts * 30) for ts in timestamps])
    return torch.from_numpy(frames).permute(0, 3, 1, 2)


class LeRobotDataset(Dataset):
    def __init__(self, root, length):
        self.root = root
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, idx):
        episode = int(np.random.default_rng(idx).integers(EPISODES))
        item = {"action": torch.linspace(-1, 1, 7) * (idx % 11)}
        for camera in CAMERAS:
            path = os.path.join(self.root, f"{camera}_{episode:06d}.mp4")
            item[camera] = decode_video_frames(path, [idx % 100 / 30, idx % 100 / 30 + 0.1])
        return item


def main():
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as root:
        loader = DataLoader(
            LeRobotDataset(root, 800), batch_size=8, shuffle=True, num_workers=2, persistent_workers=True
        )
        policy = torch.nn.Sequential(
            torch.nn.Conv2d(3, 48, 5, stride=2), torch.nn.ReLU(), torch.nn.Conv2d(48, 48, 5, stride=2),
            torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(768, 7),
        )
        optimizer = torch.optim.SGD(policy.parameters(), lr=1e-4)
        until = time.monotonic() + 32
        for step, batch in enumerate(loader):
            if time.monotonic() > until:
                break
            loss = 0
            for camera in CAMERAS:
                loss = loss + (policy(batch[camera].flatten(0, 1)) - batch["action"].repeat(2, 1)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 25 == 0:
                print(f"step {step} loss {loss.item():.3f}", flush=True)
        del loader


if __name__ == "__main__":
    main()
