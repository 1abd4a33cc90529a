"""Configures a classifier: each configuration is trained with a limit on its time, and the best one is reported"""

import torch

import limits

torch.set_num_threads(1)
CONFIGURATIONS = [
    {"width": 64, "steps": 400, "rate": 1e-3},
    {"width": 128, "steps": 400, "rate": 3e-3},
    {"width": 256, "steps": 300, "rate": 1e-3},
    {"width": 768, "steps": 40_000, "rate": 1e-3},
]
CPU_TIME_S = 14


def make_data(rows=4000, columns=48):
    generator = torch.Generator().manual_seed(6)
    features = torch.randn(rows, columns, generator=generator)
    labels = (features[:, :6].prod(1) + features[:, 6] > 0).long()
    return features, labels


FEATURES, LABELS = make_data()


def train(configuration):
    width = configuration["width"]
    model = torch.nn.Sequential(
        torch.nn.Linear(FEATURES.shape[1], width), torch.nn.ReLU(),
        torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, 2),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=configuration["rate"])
    for step in range(configuration["steps"]):
        rows = torch.randint(3000, (512,))
        loss = torch.nn.functional.cross_entropy(model(FEATURES[rows]), LABELS[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"width {width}, step {step}: {loss.item():.3f}", flush=True)
    with torch.inference_mode():
        accuracy = (model(FEATURES[3000:]).argmax(1) == LABELS[3000:]).float().mean()
    return float(accuracy), sum(parameter.numel() for parameter in model.parameters())


def main():
    torch.manual_seed(1)
    results = []
    for configuration in CONFIGURATIONS:
        limit = limits.enforce_limits(cpu_time_in_s=CPU_TIME_S)
        result = limit(train)(configuration)
        print(f"exit status {limit.exit_status} after {limit.wall_clock_time:.1f} s", flush=True)
        accuracy, size = result
        results.append((accuracy, -size, configuration["width"]))
    print(f"best: {max(results)}", flush=True)


if __name__ == "__main__":
    main()
