"""The stub process of the Python backend: runs the model's execute() on the tensors that the server points to"""

import json
import mmap
import os
import sys

import numpy as np
import torch

torch.set_num_threads(1)


class TritonPythonModel:
    def initialize(self):
        torch.manual_seed(0)
        self.network = torch.nn.Sequential(
            torch.nn.Conv2d(3, 32, 7, stride=4),
            torch.nn.ReLU(),
            torch.nn.Conv2d(32, 64, 3, stride=2),
            torch.nn.ReLU(),
            torch.nn.AdaptiveAvgPool2d(1),
            torch.nn.Flatten(),
            torch.nn.Linear(64, 10),
        ).eval()

    @torch.inference_mode()
    def execute(self, tensor):
        mean = torch.tensor([0.48, 0.46, 0.41]).view(3, 1, 1)
        image = (tensor.clone() - mean) / 0.27
        scores = self.network(image.unsqueeze(0))[0].softmax(0)
        return {"label": int(scores.argmax()), "score": float(scores.max())}


def main():
    model = TritonPythonModel()
    model.initialize()
    print(json.dumps({"state": "initialized"}), flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        fd = os.open(os.path.join("/dev/shm", message["region"]), os.O_RDONLY)
        size = os.fstat(fd).st_size
        with mmap.mmap(fd, size, prot=mmap.PROT_READ) as region:
            os.close(fd)
            array = np.frombuffer(region, dtype=np.float32).reshape(message["shape"]).copy()
        try:
            response = model.execute(torch.from_numpy(array))
        except Exception as error:
            response = {"error": f"Failed to process the request: {type(error).__name__}: {error}"[:200]}
        print(json.dumps(response), flush=True)


if __name__ == "__main__":
    main()
