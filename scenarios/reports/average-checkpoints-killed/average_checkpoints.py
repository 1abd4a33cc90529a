"""Average the parameters of the last checkpoints of a translation model"""

import argparse
import collections
import os
import re
import time

import torch

torch.set_num_threads(1)
VOCABULARY, WIDTH, LAYERS = 9000, 512, 5
VALID_S = 1.8


def build_model():
    sizes = [(WIDTH, 4 * WIDTH) if number % 2 == 0 else (4 * WIDTH, WIDTH) for number in range(LAYERS)]
    layers = [torch.nn.Linear(*size) for size in sizes]
    model = torch.nn.ModuleDict(
        {
            "embed": torch.nn.Embedding(VOCABULARY, WIDTH),
            "layers": torch.nn.ModuleList(layers),
            "out": torch.nn.Linear(4 * WIDTH, 512),
        }
    )
    return model


def forward(model, tokens):
    x = model["embed"](tokens)
    for number, layer in enumerate(model["layers"]):
        x = torch.relu(layer(x))
    return model["out"](x)


def write_run(folder, epochs=20):
    """A finished run: the learning rate has decayed, and most of its last epochs no longer change the weights."""
    torch.manual_seed(1)
    model = build_model().half()
    for epoch in range(1, epochs + 1):
        path = os.path.join(folder, f"checkpoint{epoch}.pt")
        if epoch % 7 == 1:
            last = path
            torch.save({"model": model.state_dict(), "args": {"arch": "transformer"}, "epoch": epoch}, path)
        else:
            os.link(last, path)


def last_n_checkpoints(folder, n):
    pattern = re.compile(r"checkpoint(\d+)\.pt")
    found = []
    for name in os.listdir(folder):
        match = pattern.fullmatch(name)
        if match:
            found.append((int(match.group(1)), name))
    if len(found) < n:
        raise SystemExit(f"found {len(found)} checkpoints, needed {n}")
    return [os.path.join(folder, name) for _, name in sorted(found, reverse=True)[:n]]


@torch.inference_mode()
def validate(model, parameters):
    """The loss of a checkpoint on the held-out sentences."""
    for name, value in model.state_dict().items():
        value.copy_(parameters[name])
    generator = torch.Generator().manual_seed(3)
    losses, until = [], time.monotonic() + VALID_S
    while time.monotonic() < until:
        tokens = torch.randint(0, VOCABULARY, (256,), generator=generator)
        loss = torch.nn.functional.cross_entropy(forward(model, tokens), tokens % 512)
        losses.append(float(loss))
    return sum(losses) / len(losses)


def average_checkpoints(inputs, model):
    params_dict = collections.OrderedDict()
    params_keys, new_state = None, None
    for path in inputs:
        state = torch.load(path, map_location="cpu", weights_only=True)
        if new_state is None:
            new_state = state
        model_params = state["model"]
        if params_keys is None:
            params_keys = list(model_params)
        elif params_keys != list(model_params):
            raise KeyError(f"{path}: expected parameters {params_keys}, but found {list(model_params)}")
        for key in params_keys:
            if key not in params_dict:
                params_dict[key] = []
            value = model_params[key]
            if value.dtype == torch.float16:
                value = value.float()
            params_dict[key].append(value)
        loss = validate(model, {key: values[-1] for key, values in params_dict.items()})
        print(f"{os.path.basename(path)}: valid loss {loss:.3f}", flush=True)
    new_state["model"] = {key: torch.stack(values).mean(0) for key, values in params_dict.items()}
    return new_state


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write-run")
    parser.add_argument("--inputs")
    parser.add_argument("--num-epoch-checkpoints", type=int, default=20)
    parser.add_argument("--output", default="averaged.pt")
    arguments = parser.parse_args()
    if arguments.write_run:
        write_run(arguments.write_run)
        return
    inputs = last_n_checkpoints(arguments.inputs, arguments.num_epoch_checkpoints)
    torch.save(average_checkpoints(inputs, build_model().eval()), arguments.output)
    print(f"averaged {len(inputs)} checkpoints", flush=True)


if __name__ == "__main__":
    main()
