"""A campaign of fault injections into one network: the controller asks a process with the network for trial after trial"""

import concurrent.futures
import multiprocessing
import time

import torch

RUN_S = 34
IMAGES, SIDE = 8, 64
WIDTHS = [3, 16, 32, 32]
TRIAL_S = 0.6

network = None
images = None


def load():
    global network, images
    torch.set_num_threads(1)
    torch.manual_seed(0)
    layers = []
    for inputs, outputs in zip(WIDTHS, WIDTHS[1:]):
        layers += [torch.nn.Conv2d(inputs, outputs, 3, padding=1), torch.nn.ReLU()]
    network = torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(WIDTHS[-1], 10))
    network.eval()
    images = torch.randn(IMAGES, 3, SIDE, SIDE)


class FaultConfig:
    """Which activations of a module are hit, and how"""

    def __init__(self, shape, rate, generator):
        self.enabled = True
        self.errors = torch.zeros(shape)
        hit = torch.rand(shape, generator=generator) < rate
        self.errors[hit] = torch.randn(int(hit.sum()), generator=generator) * 4

    def inject(self, output):
        return output + self.errors


class FaultInjector:
    def __init__(self, module, rate, seed):
        self.module = module
        self.configs = {}
        generator = torch.Generator().manual_seed(seed)
        for name, child in module.named_children():
            if isinstance(child, torch.nn.Conv2d):
                self.configs[name] = FaultConfig((IMAGES, child.out_channels, SIDE, SIDE), rate, generator)
        self.add_hooks()

    def add_hooks(self):
        for name, config in self.configs.items():

            def after(module, arguments, output, config=config):
                if config.enabled:
                    return config.inject(output)
                return None

            self.module.get_submodule(name).register_forward_hook(after)

    def disable(self):
        for config in self.configs.values():
            config.enabled = False

    def __call__(self, batch):
        return self.module(batch)


def run_trial(number, rate):
    with torch.inference_mode():
        golden = network(images).argmax(1)
        injector = FaultInjector(network, rate, number)
        end, wrong, passes = time.monotonic() + TRIAL_S, 0, 0
        while time.monotonic() < end:
            wrong += int((injector(images).argmax(1) != golden).sum())
            passes += 1
        injector.disable()
    return number, rate, wrong / (passes * IMAGES)


def main():
    rates = [1e-4, 1e-3, 1e-2]
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context, initializer=load) as executor:
        end, number, sums = time.monotonic() + RUN_S, 0, dict.fromkeys(rates, 0.0)
        while time.monotonic() < end:
            number, rate, corrupted = executor.submit(run_trial, number + 1, rates[number % len(rates)]).result()
            sums[rate] += corrupted
            if number % 10 == 0:
                print(f"trial {number}: {corrupted:.3f} of the outputs are corrupted at a rate of {rate}", flush=True)
    print({rate: round(total / max(number, 1), 3) for rate, total in sums.items()}, flush=True)


if __name__ == "__main__":
    main()
