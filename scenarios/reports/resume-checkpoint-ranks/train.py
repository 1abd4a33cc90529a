"""Self-supervised training of a trunk: saves its weights and the optimizer's state, and resumes from them in each rank."""

import argparse
import os

import torch


def build(width=1920, blocks=5):
    layers = [torch.nn.Linear(256, width)]
    for _ in range(blocks):
        layers += [torch.nn.GELU(), torch.nn.Linear(width, width)]
    return torch.nn.Sequential(*layers, torch.nn.GELU(), torch.nn.Linear(width, 64))


def load_checkpoint(path, model):
    checkpoint = torch.load(path, map_location="cpu")
    state = {name: value.clone() for name, value in checkpoint["classy_state_dict"]["trunk"].items()}
    missing = model.load_state_dict(state)
    print(f"loaded {len(state)} parameters from {os.path.basename(path)}: {missing}", flush=True)
    return checkpoint


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args()
    path = os.path.join(options.folder, "model_phase0.torch")
    torch.manual_seed(int(os.environ["RANK"]))
    model = build()
    optimizer = torch.optim.Adam(model.parameters(), 1e-4)
    step = 0
    if options.resume:
        checkpoint = load_checkpoint(path, model)
        optimizer.load_state_dict(checkpoint["classy_state_dict"]["optimizer"])
        step = checkpoint["iteration"]
    for step in range(step, options.steps):
        views = torch.randn(24, 256)
        first, second = model(views), model(views + 0.1 * torch.randn_like(views))
        loss = torch.nn.functional.cross_entropy(first @ second.T / 8, torch.arange(24))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 15 == 0:
            print(f"rank {os.environ['RANK']} step {step}: loss {loss.item():.3f}", flush=True)
    if os.environ["RANK"] == "0":
        states = {"trunk": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save({"classy_state_dict": states, "iteration": step + 1}, path)


if __name__ == "__main__":
    main()
