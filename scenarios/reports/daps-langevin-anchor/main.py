"""Evaluates DAPS on a set of images: reconstructs each batch from its blurred measurement, and reports the PSNR."""

import torch
from daps import DAPS, Blur, Denoiser, LangevinDynamics

BATCHES, BATCH, SIZE, ANNEALING = 3, 4, 256, 26


def image_batch(generator):
    coarse = torch.rand(BATCH, 3, 16, 16, generator=generator) * 2 - 1
    return torch.nn.functional.interpolate(coarse, size=(SIZE, SIZE), mode="bicubic").clamp(-1, 1)


def main():
    torch.set_num_threads(2)
    torch.manual_seed(0)
    net = Denoiser().eval().requires_grad_(False)
    operator = Blur()
    sigmas = [float(sigma) for sigma in torch.logspace(1.2, -1.2, ANNEALING)]
    langevin = LangevinDynamics(num_steps=4, lr=0.4, tau=0.5, seconds=0.25)
    algorithm = DAPS(net, operator, sigmas, langevin=langevin)
    generator = torch.Generator().manual_seed(1)
    scores = []
    for number in range(BATCHES):
        images = image_batch(generator)
        measurement = operator(images)
        measurement = measurement + 0.02 * torch.randn_like(measurement)
        reconstruction = algorithm.inference(measurement, images.shape)
        error = (reconstruction.clamp(-1, 1) - images).square().mean().item()
        scores.append(10 * torch.log10(torch.tensor(4 / error)).item())
        print(f"batch {number}: psnr {scores[-1]:.2f}", flush=True)
    print(f"psnr {sum(scores) / len(scores):.2f}")


if __name__ == "__main__":
    main()
