"""A data set of episodes in the LeRobot layout: a file of frames for each episode, and the list of episodes"""

import json
import os
import queue
import shutil
import struct
import threading
import zlib

import numpy as np

from datasets_table import Dataset, concatenate_datasets, embed_images


def encode_png(image):
    height, width, _ = image.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), image.reshape(height, -1)], 1)

    def part(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress(rows.tobytes(), 1)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", header) + part(b"IDAT", pixels) + part(b"IEND", b"")


class ImageWriter:
    def __init__(self, threads):
        self.queue = queue.Queue()
        self.threads = [threading.Thread(target=self.work, daemon=True) for _ in range(threads)]
        for thread in self.threads:
            thread.start()

    def work(self):
        while (item := self.queue.get()) is not None:
            image, path = item
            with open(path, "wb") as file:
                file.write(encode_png(image))
            self.queue.task_done()

    def stop(self):
        for _ in self.threads:
            self.queue.put(None)
        for thread in self.threads:
            thread.join()


class LeRobotDataset:
    @classmethod
    def create(cls, root, features, image_writer_threads):
        self = cls()
        self.root, self.features = root, features
        self.image_keys = [key for key, feature in features.items() if feature["dtype"] == "image"]
        os.makedirs(os.path.join(root, "data"))
        os.makedirs(os.path.join(root, "meta"))
        self.image_writer = ImageWriter(image_writer_threads)
        self.hf_dataset = self.create_hf_dataset()
        self.episode_buffer = self.create_episode_buffer()
        self.episodes = []
        return self

    def create_hf_dataset(self):
        return Dataset([])

    def create_episode_buffer(self):
        return {key: [] for key in self.features}

    @property
    def num_frames(self):
        return sum(episode["length"] for episode in self.episodes)

    def image_folder(self):
        return os.path.join(self.root, "images", f"episode_{len(self.episodes):06}")

    def add_frame(self, frame):
        number = len(self.episode_buffer[self.image_keys[0]])
        for key, value in frame.items():
            if key in self.image_keys:
                path = os.path.join(self.image_folder(), key, f"frame_{number:06}.png")
                os.makedirs(os.path.dirname(path), exist_ok=True)
                self.image_writer.queue.put((value, path))
                value = path
            self.episode_buffer[key].append(value)

    def save_episode(self, task):
        self.image_writer.queue.join()
        self._save_episode_table()
        self.episodes.append({"episode_index": len(self.episodes), "task": task, "length": self.last_length})
        self.episode_buffer = self.create_episode_buffer()

    def _save_episode_table(self):
        buffer, self.last_length = self.episode_buffer, len(self.episode_buffer[self.image_keys[0]])
        columns = {key: buffer[key] if key in self.image_keys else np.stack(buffer[key]) for key in buffer}
        ep_dataset = embed_images(Dataset.from_dict(columns), self.image_keys)
        self.hf_dataset = concatenate_datasets([self.hf_dataset, ep_dataset])
        ep_dataset.to_file(os.path.join(self.root, "data", f"episode_{len(self.episodes):06}.table"))
        shutil.rmtree(self.image_folder())

    def stop_image_writer(self):
        self.image_writer.stop()

    def consolidate(self):
        with open(os.path.join(self.root, "meta", "episodes.jsonl"), "w") as file:
            for episode in self.episodes:
                file.write(json.dumps(episode) + "\n")
