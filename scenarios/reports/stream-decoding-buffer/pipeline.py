"""Video inference: a decoder thread fills a buffer of frames, a sink takes predictions from a second queue."""

import os
import queue
import threading
import time

import numpy as np
import torch
from torch import nn

SECONDS = 26.0
DECODING_BUFFER_SIZE = int(os.environ.get("VIDEO_SOURCE_BUFFER_SIZE", "64"))
PREDICTIONS_QUEUE_SIZE = 512
HEIGHT, WIDTH = 720, 1280


class VideoSource:
    def __init__(self, buffer_size):
        self.frames_buffer = queue.Queue(maxsize=buffer_size)
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.consume_video, daemon=True)

    def consume_video(self):
        rng = np.random.default_rng(2)
        scene = rng.integers(0, 200, (HEIGHT, WIDTH, 3), dtype=np.uint8)
        frame_id = 0
        while not self.stopped.is_set():
            scene = np.roll(scene, 5, axis=1)
            image = scene + rng.integers(0, 50, (HEIGHT, 1, 3), dtype=np.uint8)
            frame_id += 1
            while not self.stopped.is_set():
                try:
                    self.frames_buffer.put((frame_id, image), timeout=0.2)
                    break
                except queue.Full:
                    continue

    def __iter__(self):
        self.thread.start()
        while not self.stopped.is_set():
            yield self.frames_buffer.get()


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=4),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2),
            nn.ReLU(),
            nn.Conv2d(32, 32, 3),
            nn.ReLU(),
            nn.Conv2d(32, 32, 3),
            nn.ReLU(),
            nn.Conv2d(32, 5, 1),
        )

    @torch.inference_mode()
    def forward(self, image):
        x = torch.from_numpy(image).permute(2, 0, 1)[None].float() / 255
        boxes = self.body(x).flatten(2)[0].T
        return boxes[boxes[:, 4].topk(20).indices].tolist()


class InferencePipeline:
    def __init__(self, source, model, on_prediction):
        self.source, self.model, self.on_prediction = source, model, on_prediction
        self.predictions_queue = queue.Queue(maxsize=PREDICTIONS_QUEUE_SIZE)

    def dispatch(self):
        while (item := self.predictions_queue.get()) is not None:
            self.on_prediction(*item)

    def run(self, seconds):
        sink = threading.Thread(target=self.dispatch)
        sink.start()
        end = time.monotonic() + seconds
        for frame_id, image in self.source:
            self.predictions_queue.put((frame_id, self.model(image)))
            if time.monotonic() > end:
                break
        self.source.stopped.set()
        self.predictions_queue.put(None)
        sink.join()


def show(frame_id, predictions):
    if frame_id % 50 == 0:
        print(f"frame {frame_id}: best {max(box[4] for box in predictions):.3f}", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    InferencePipeline(VideoSource(DECODING_BUFFER_SIZE), Detector().eval(), show).run(SECONDS)
