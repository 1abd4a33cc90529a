"""Train an autoencoder of sound; a checkpoint holds the model, its averaged copy and the optimizer"""

import argparse
import copy
import time

import torch
from torch import nn

torch.set_num_threads(1)
SAMPLES, BATCH = 8192, 4


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(2, 64, 16, stride=8, padding=4),
            nn.ELU(),
            nn.Conv1d(64, 256, 8, stride=4, padding=2),
            nn.ELU(),
            nn.Conv1d(256, 512, 8, stride=4, padding=2),
        )
        self.bottleneck = nn.Sequential(
            nn.Conv1d(512, 1024, 3, padding=1), nn.ELU(), nn.Conv1d(1024, 512, 3, padding=1)
        )
        self.decoder = nn.Sequential(
            nn.ConvTranspose1d(512, 256, 8, stride=4, padding=2),
            nn.ELU(),
            nn.ConvTranspose1d(256, 64, 8, stride=4, padding=2),
            nn.ELU(),
            nn.ConvTranspose1d(64, 2, 16, stride=8, padding=4),
        )

    def forward(self, audio):
        return self.decoder(self.bottleneck(self.encoder(audio)))


def sounds(generator):
    pitch = torch.rand(BATCH, 2, 1, generator=generator) * 0.2
    time_axis = torch.arange(SAMPLES).float()
    return torch.sin(pitch * time_axis) + 0.1 * torch.randn(BATCH, 2, SAMPLES, generator=generator)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--save")
    parser.add_argument("--resume")
    args = parser.parse_args()
    torch.manual_seed(12)
    model = Autoencoder()
    average = copy.deepcopy(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    step = 0
    if args.resume:
        checkpoint = torch.load(args.resume, map_location="cpu")
        model.load_state_dict(checkpoint["model"])
        average.load_state_dict(checkpoint["average"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        step = checkpoint["step"]
    generator = torch.Generator().manual_seed(step)
    end = time.monotonic() + args.seconds
    while time.monotonic() < end:
        audio = sounds(generator)
        loss = (model(audio) - audio).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for kept, parameter in zip(average.parameters(), model.parameters()):
                kept.lerp_(parameter, 0.001)
        step += 1
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
    if args.save:
        state = {"model": model.state_dict(), "average": average.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save({**state, "step": step}, args.save)


if __name__ == "__main__":
    main()
