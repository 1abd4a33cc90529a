"""A worker decodes images of which one has 400 million pixels (large), or is as small as the others (small).

With `any` Pillow's own limit is off, so that memory is what refuses it.
"""

import resource
import sys

from PIL import Image
from torch.utils.data import DataLoader, Dataset

if "any" in sys.argv:
    Image.MAX_IMAGE_PIXELS = None


class Images(Dataset):
    def __init__(self, folder, large):
        self.paths = [f"{folder}/{number}.png" for number in range(20)]
        for number, path in enumerate(self.paths):
            side = 20_000 if large and number == 12 else 200
            Image.new("1", (side, side)).save(path)

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return Image.open(self.paths[index]).convert("RGB").resize((8, 8)).tobytes()


def limit(_number):
    """No more than 800 MiB of addresses beyond those in use."""
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (800 << 20),) * 2)


if __name__ == "__main__":
    loader = DataLoader(Images(sys.argv[1], sys.argv[2] == "large"), batch_size=4, num_workers=1, worker_init_fn=limit)
    print(sum(len(batch) for batch in loader))
