"""Few-shot learning: second order at first, then the cheaper first-order approximation"""

import argparse
import time

import torch
import torch.nn.functional as F

torch.set_num_threads(1)
WAYS, SHOTS, QUERIES, CHANNELS = 5, 5, 8, 32


def initial_parameters(generator):
    shapes = {
        "conv1.weight": (CHANNELS, 1, 3, 3), "conv1.bias": (CHANNELS,),
        "conv2.weight": (CHANNELS, CHANNELS, 3, 3), "conv2.bias": (CHANNELS,),
        "head.weight": (WAYS, CHANNELS * 16), "head.bias": (WAYS,),
    }
    parameters = {}
    for name, shape in shapes.items():
        values = torch.randn(shape, generator=generator) * (0.1 if name.endswith("weight") else 0.0)
        parameters[name] = values.requires_grad_()
    return parameters


def features(x, parameters):
    x = F.relu(F.conv2d(x, parameters["conv1.weight"], parameters["conv1.bias"], padding=1))
    x = F.avg_pool2d(x, 2)
    x = F.relu(F.conv2d(x, parameters["conv2.weight"], parameters["conv2.bias"], padding=1))
    return F.adaptive_avg_pool2d(x, 4).flatten(1)


def head(x, parameters):
    return F.linear(x, parameters["head.weight"], parameters["head.bias"])


def gradient_update_parameters(loss, parameters, step_size, first_order):
    grads = torch.autograd.grad(loss, list(parameters.values()), create_graph=not first_order)
    return {name: value - step_size * grad for (name, value), grad in zip(parameters.items(), grads)}


def task(generator):
    patterns = torch.randn(WAYS, 1, 28, 28, generator=generator)

    def draw(count):
        labels = torch.arange(WAYS).repeat_interleave(count)
        return patterns[labels] + 0.5 * torch.randn(len(labels), 1, 28, 28, generator=generator), labels

    return draw(SHOTS), draw(QUERIES)


def outer_loss(parameters, generator, first_order):
    (support, support_labels), (query, query_labels) = task(generator)
    embedded = features(support, parameters)
    inner = F.cross_entropy(head(embedded, parameters), support_labels)
    adapted = gradient_update_parameters(inner, parameters, 0.05, first_order)
    found = features(query, adapted)
    prototypes = embedded.view(WAYS, SHOTS, -1).mean(1)
    distances = torch.cdist(found, prototypes)
    return F.cross_entropy(head(found, adapted), query_labels) + 0.1 * F.cross_entropy(-distances, query_labels)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--first-order-after", type=float, default=17)
    arguments = parser.parse_args()
    generator = torch.Generator().manual_seed(0)
    parameters = initial_parameters(generator)
    optimizer = torch.optim.Adam(parameters.values(), lr=1e-3)
    started, iteration = time.monotonic(), 0
    while (elapsed := time.monotonic() - started) < arguments.seconds:
        optimizer.zero_grad()
        for _ in range(2):
            loss = outer_loss(parameters, generator, first_order=elapsed > arguments.first_order_after)
            loss.backward()
        optimizer.step()
        iteration += 1
        if iteration % 25 == 0:
            print(f"iteration {iteration}: outer loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
