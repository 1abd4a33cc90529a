"""Multi-object tracking by association of every detection box, with appearance features"""

import collections
import itertools
import struct
import sys

import numpy as np
import torch
from torch import nn

HEIGHT, WIDTH = 240, 320
MAX_TIME_LOST = 15


class Track:
    numbers = itertools.count(1)

    def __init__(self, box, thumbnail, feature, frame):
        self.number = next(self.numbers)
        self.mean = np.concatenate([box, np.zeros(4)])
        self.covariance = np.eye(8) * 10.0
        self.thumbnail = thumbnail
        self.features = collections.deque([feature], maxlen=30)
        self.last_frame = frame
        self.state = "tracked"

    @property
    def box(self):
        return self.mean[:4]

    def predict(self):
        self.mean[:4] += self.mean[4:]
        self.covariance = self.covariance + np.eye(8) * 0.1

    def update(self, box, feature, frame):
        self.mean[4:] = 0.7 * self.mean[4:] + 0.3 * (box - self.mean[:4])
        self.mean[:4] = box
        self.covariance = self.covariance * 0.9
        self.features.append(feature)
        self.last_frame = frame
        self.state = "tracked"


def overlaps(first, second):
    if not len(first) or not len(second):
        return np.zeros((len(first), len(second)))
    low = np.maximum(first[:, None, :2], second[None, :, :2])
    high = np.minimum(first[:, None, 2:], second[None, :, 2:])
    common = np.clip(high - low, 0, None).prod(2)
    areas = [(boxes[:, 2:] - boxes[:, :2]).prod(1) for boxes in (first, second)]
    return common / (areas[0][:, None] + areas[1][None, :] - common)


def subtract(tracks, others):
    numbers = {track.number for track in others}
    return [track for track in tracks if track.number not in numbers]


class Tracker:
    def __init__(self):
        self.frame = 0
        self.tracked, self.lost, self.removed = [], [], []

    def update(self, boxes, thumbnails, features):
        self.frame += 1
        pool = self.tracked + self.lost
        for track in pool:
            track.predict()
        scores = overlaps(np.array([track.box for track in pool]).reshape(-1, 4), boxes)
        matched_tracks, matched_boxes = set(), set()
        for index in np.argsort(-scores, axis=None):
            row, column = divmod(int(index), len(boxes))
            if scores[row, column] < 0.3:
                break
            if row not in matched_tracks and column not in matched_boxes:
                matched_tracks.add(row)
                matched_boxes.add(column)
                pool[row].update(boxes[column], features[column].clone(), self.frame)
        for row, track in enumerate(pool):
            if row not in matched_tracks:
                track.state = "lost"
        started = [
            Track(boxes[column], thumbnails[column].clone(), features[column].clone(), self.frame)
            for column in range(len(boxes))
            if column not in matched_boxes
        ]
        gone = [t for t in pool if t.state == "lost" and self.frame - t.last_frame > MAX_TIME_LOST]
        self.tracked = [track for track in pool if track.state == "tracked"] + started
        self.lost = subtract([track for track in pool if track.state == "lost"], self.removed)
        self.lost = subtract(self.lost, gone)
        self.removed.extend(gone)
        return self.tracked


def read_records(stream):
    size = HEIGHT * WIDTH * 3
    while head := stream.read(4):
        count = struct.unpack("<I", head)[0]
        boxes = np.frombuffer(stream.read(count * 16), dtype=np.float32).reshape(count, 4).astype(np.float64)
        frame = torch.frombuffer(bytearray(stream.read(size)), dtype=torch.uint8).reshape(HEIGHT, WIDTH, 3)
        yield boxes, frame.permute(2, 0, 1).float() / 255.0


def main():
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    embed = nn.Sequential(
        nn.Conv2d(3, 64, 3, stride=2), nn.ReLU(), nn.Conv2d(64, 128, 3, stride=2), nn.ReLU(),
        nn.Conv2d(128, 256, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 512),
    ).eval()  # fmt: skip
    tracker = Tracker()
    for boxes, frame in read_records(sys.stdin.buffer):
        crops = [frame[None, :, int(y1) : int(y2), int(x1) : int(x2)] for x1, y1, x2, y2 in boxes]
        crops = torch.cat([nn.functional.interpolate(crop, (128, 64), mode="bilinear") for crop in crops])
        tracks = tracker.update(boxes, crops, nn.functional.normalize(embed(crops)))
        if tracker.frame % 100 == 0:
            print(f"frame {tracker.frame}: {len(tracks)} tracks, {len(tracker.lost)} lost", flush=True)


if __name__ == "__main__":
    main()
