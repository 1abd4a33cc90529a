"""Record two cameras, and save both videos when the recording stops."""

import copy
import os
import queue
import tempfile
import threading
import time

import numpy as np

FPS = 11
SECONDS = 22
SHAPE = (480, 640, 3)


class FramePayload:
    def __init__(self, camera_id, number, image):
        self.camera_id = camera_id
        self.number = number
        self.image = image
        self.timestamp = time.perf_counter_ns()


class Camera(threading.Thread):
    """Grabs frames at the camera's pace, into a queue with room for two."""

    def __init__(self, camera_id, stop):
        super().__init__(name=f"camera-{camera_id}", daemon=True)
        self.camera_id = camera_id
        self.stop = stop
        self.frames = queue.Queue(maxsize=2)
        self.random = np.random.default_rng(camera_id)

    def run(self):
        number = 0
        while not self.stop.is_set():
            time.sleep(1 / FPS)
            image = self.random.integers(0, 256, SHAPE, dtype=np.uint8)
            try:
                self.frames.put(FramePayload(self.camera_id, number, image), timeout=1)
            except queue.Full:
                continue
            number += 1


class VideoRecorder:
    """Holds what one camera saw, and writes it when told to."""

    def __init__(self, camera_id, folder):
        self.camera_id = camera_id
        self.path = os.path.join(folder, f"camera_{camera_id}.raw")
        self._frame_payload_list = []

    def append_frame_payload(self, payload):
        self._frame_payload_list.append(payload)

    def save(self):
        with open(self.path, "wb") as file:
            for payload in self._frame_payload_list:
                file.write(payload.image.tobytes())


class CameraGroupWorker(threading.Thread):
    """Takes a frame of each camera in turn, shows it, and records it."""

    def __init__(self, cameras, folder, stop):
        super().__init__(name="camera-group")
        self.cameras = cameras
        self.folder = folder
        self.stop = stop
        self.save_queue = queue.Queue()

    def run(self):
        recorders = {c.camera_id: VideoRecorder(c.camera_id, self.folder) for c in self.cameras}
        count = 0
        while not self.stop.is_set():
            for camera in self.cameras:
                try:
                    payload = camera.frames.get(timeout=1)
                except queue.Empty:
                    continue
                preview = payload.image[::4, ::4].mean(axis=2)
                recorders[payload.camera_id].append_frame_payload(payload)
                count += 1
                if count % 40 == 0:
                    print(f"{count} frames, preview mean {preview.mean():.1f}", flush=True)
        print("stop: hand the recorders over", flush=True)
        for recorder in recorders.values():
            self.save_queue.put(copy.deepcopy(recorder))
        self.save_queue.put(None)


def main():
    stop = threading.Event()
    with tempfile.TemporaryDirectory() as folder:
        cameras = [Camera(i, stop) for i in range(2)]
        worker = CameraGroupWorker(cameras, folder, stop)
        for thread in [*cameras, worker]:
            thread.start()
        time.sleep(SECONDS)
        stop.set()
        while (recorder := worker.save_queue.get()) is not None:
            recorder.save()
            print(f"saved {recorder.path}", flush=True)
        worker.join()


if __name__ == "__main__":
    main()
