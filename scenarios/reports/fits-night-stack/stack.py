"""Registers the frames of a night on the first one, and stacks them"""

import glob
import math
import os
import sys

import numpy as np
import torch

import fits

torch.set_num_threads(1)
ANGLES = torch.linspace(-1.2, 1.2, 30) * math.pi / 180


def turned(image, angle):
    cosine, sine = math.cos(angle), math.sin(angle)
    matrix = torch.tensor([[[cosine, -sine, 0.0], [sine, cosine, 0.0]]])
    grid = torch.nn.functional.affine_grid(matrix, (1, 1, *image.shape), align_corners=False)
    return torch.nn.functional.grid_sample(image[None, None], grid, align_corners=False)[0, 0]


def register(image, reference):
    """The angle and the shift with the highest phase correlation"""
    best = (-1.0, 0.0, 0)
    for angle in ANGLES.tolist():
        spectrum = torch.fft.rfft2(turned(image, angle)) * reference.conj()
        surface = torch.fft.irfft2(spectrum / (spectrum.abs() + 1e-3))
        peak = int(surface.argmax())
        best = max(best, (float(surface.flatten()[peak]), angle, peak))
    return best[1], divmod(best[2], image.shape[1])


def main(folder):
    reference, frames = None, []
    for path in sorted(glob.glob(os.path.join(folder, "*.fits"))):
        hdulist = fits.open_file(path)
        image = torch.from_numpy(np.asarray(hdulist.data, dtype=np.float32))
        if reference is None:
            reference = torch.fft.rfft2(image)
        frames.append((hdulist.data, *register(image, reference)))
        hdulist.close()
        if len(frames) % 20 == 0:
            print(f"{len(frames)} frames registered", flush=True)
    total = torch.zeros_like(image)
    for data, angle, (down, right) in frames:
        frame = turned(torch.from_numpy(np.asarray(data, dtype=np.float32)), angle)
        total += torch.roll(frame, (-down, -right), (0, 1))
    fits.write(os.path.join(folder, "stacked.fits"), (total / len(frames)).numpy())


if __name__ == "__main__":
    main(sys.argv[1])
