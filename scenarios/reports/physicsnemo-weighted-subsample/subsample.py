"""Draw points of surface meshes with weights of their areas, and fit pressures to them"""

import argparse
import time

import torch

torch.set_num_threads(1)


def meshes(seconds, generator):
    """The wind tunnel's meshes: of some 100,000 to 2 million faces, and the reference mesh of the largest car last"""
    started, number = time.monotonic(), 0
    sizes = [400_000, 150_000, 2_000_000, 900_000, 300_000, 1_200_000]
    while time.monotonic() - started < seconds:
        yield f"drivaer_{number:03d}", sizes[number % len(sizes)] + int(torch.randint(5000, (1,), generator=generator))
        number += 1
    yield "drivaer_reference_fine", (1 << 24) + 200_000


def face_areas(faces, generator):
    areas = torch.empty(faces).exponential_(2.0, generator=generator)
    return areas.add_(1e-4)


def shuffle_array(faces, count, weights, generator):
    """Indices of `count` of the faces"""
    if weights is None:
        return torch.randperm(faces, generator=generator)[:count]
    return torch.multinomial(weights, count, replacement=False, generator=generator)


class Surrogate(torch.nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(4, width), torch.nn.SiLU(), torch.nn.Linear(width, width), torch.nn.SiLU(),
            torch.nn.Linear(width, 1),
        )

    def forward(self, positions):
        return self.layers(positions)


def sample_surface(faces, count, generator):
    weights = face_areas(faces, generator)
    picked = shuffle_array(faces, count, weights, generator)
    angle = picked.float() / faces * 6.283
    positions = torch.stack([angle.cos(), angle.sin(), (3 * angle).cos(), weights[picked]], dim=1)
    pressure = 1 - 4 * angle.sin().square().unsqueeze(1)
    return positions, pressure


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--points", type=int, default=20000)
    parser.add_argument("--seconds", type=float, default=18.0)
    arguments = parser.parse_args()
    generator = torch.Generator().manual_seed(5)
    torch.manual_seed(5)
    model = Surrogate()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for number, (name, faces) in enumerate(meshes(arguments.seconds, generator)):
        positions, pressure = sample_surface(faces, arguments.points, generator)
        for chunk, target in zip(positions.split(2500), pressure.split(2500)):
            loss = (model(chunk) - target).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if number % 10 == 0:
            print(f"{name}: {faces} faces, loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
