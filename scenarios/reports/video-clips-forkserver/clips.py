"""Videos, the timestamps of their frames, and the clips into which they are cut"""

import os
import struct
import time
import zlib

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

HEIGHT, WIDTH = 24, 32


def write_videos(folder, videos, seed=0):
    """Each file: the number of frames; and of each frame the timestamp, the compressed size and the pixels"""
    random, paths = np.random.default_rng(seed), []
    for number in range(videos):
        frames, stamp, path = int(random.integers(40, 80)), 0, os.path.join(folder, f"{number:04}.vid")
        with open(path, "wb") as file:
            file.write(struct.pack("<q", frames))
            for _ in range(frames):
                stamp += int(random.integers(510, 514))
                pixels = zlib.compress(random.integers(0, 32, (HEIGHT, WIDTH, 3), np.uint8).tobytes(), 1)
                file.write(struct.pack("<qq", stamp, len(pixels)) + pixels)
        paths.append(path)
    return paths


def packets(path):
    with open(path, "rb") as file:
        for _ in range(struct.unpack("<q", file.read(8))[0]):
            stamp, size = struct.unpack("<qq", file.read(16))
            yield stamp, file.read(size)


class Timestamps(Dataset):
    """Reads the timestamps of all frames of a video; it takes a while, as broken packets have to be found"""

    def __init__(self, paths, video_s):
        self.paths, self.video_s = paths, video_s

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        until, stamps = time.monotonic() + self.video_s, []
        for stamp, pixels in packets(self.paths[index]):
            if len(zlib.decompress(pixels)) == HEIGHT * WIDTH * 3:
                stamps.append(stamp)
        while time.monotonic() < until:
            for _, pixels in packets(self.paths[index]):
                zlib.decompress(pixels)
        return stamps


def same(samples):
    return samples


class VideoClips:
    def __init__(self, paths, length, video_s):
        self.paths, self.length = paths, length
        loader = DataLoader(Timestamps(paths, video_s), batch_size=10, num_workers=2, collate_fn=same)
        self.video_pts = []
        for done, batch in enumerate(loader, 1):
            self.video_pts.extend(torch.tensor(stamps) for stamps in batch)
            if done % 10 == 0:
                print(f"timestamps of {len(self.video_pts)} videos", flush=True)
        self.clips = [stamps[: len(stamps) // length * length].view(-1, length).clone() for stamps in self.video_pts]
        self.ends = np.cumsum([len(clips) for clips in self.clips])

    def __len__(self):
        return int(self.ends[-1])

    def get_clip(self, index):
        video = int(np.searchsorted(self.ends, index, side="right"))
        clip = self.clips[video][index - self.ends[video]]
        first, last = clip[0].item(), clip[-1].item()
        frames = [zlib.decompress(pixels) for stamp, pixels in packets(self.paths[video]) if first <= stamp <= last]
        pixels = np.frombuffer(b"".join(frames), np.uint8).reshape(-1, HEIGHT, WIDTH, 3)
        return torch.from_numpy(pixels.copy()).permute(3, 0, 1, 2).float() / 32, video


class ClipDataset(Dataset):
    def __init__(self, paths, length=8, video_s=0.05):
        self.video_clips = VideoClips(paths, length, video_s)

    def __len__(self):
        return len(self.video_clips)

    def __getitem__(self, index):
        clip, video = self.video_clips.get_clip(index)
        return clip, video % 4
