"""Images are reconstructed from features; each reconstruction hooks the same encoder again, and keeps everything."""

import time

import torch

SECONDS = 32.0


class FeatureExtractorHandle:
    def __init__(self, detach=False):
        self.outputs = []
        self._detach = detach

    def __call__(self, module, module_in, module_out):
        self.outputs.append(module_out.detach() if self._detach else module_out)

    def clear(self):
        self.outputs = []


class FeatureExtractor:
    def __init__(self, encoder, layers, detach=False):
        self.__encoder = encoder
        self.__handles = {}
        modules = dict(encoder.named_modules())
        for layer in layers:
            handle = FeatureExtractorHandle(detach)
            modules[layer].register_forward_hook(handle)
            self.__handles[layer] = handle

    def run(self, x):
        for handle in self.__handles.values():
            handle.clear()
        self.__encoder(x)
        return {layer: handle.outputs[0] for layer, handle in self.__handles.items()}


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Sequential(torch.nn.Conv2d(3, 24, 3, padding=1), torch.nn.ReLU())
        self.block1 = torch.nn.Sequential(torch.nn.Conv2d(24, 24, 3, stride=2, padding=1), torch.nn.ReLU())
        self.block2 = torch.nn.Sequential(torch.nn.Conv2d(24, 48, 3, padding=1), torch.nn.ReLU())

    def forward(self, x):
        return self.block2(self.block1(self.stem(x))).mean((2, 3))


def reconstruct(target, encoder, layers, seconds):
    feature_extractor = FeatureExtractor(encoder, layers, detach=False)
    image = torch.zeros(1, 3, 160, 160, requires_grad=True)
    optimizer = torch.optim.SGD([image], lr=0.1)
    end = time.monotonic() + seconds
    steps = 0
    while time.monotonic() < end:
        optimizer.zero_grad()
        # a generator of the reporter's kind takes most of the time of an iteration
        generated = torch.nn.functional.interpolate(
            torch.nn.functional.conv2d(image.repeat(3, 1, 1, 1), torch.full((24, 3, 7, 7), 1 / 147), padding=3), size=160
        )[:1, :3]
        features = feature_extractor.run(image + 0.01 * generated)
        loss = sum(((features[layer] - target[layer]) ** 2).mean() for layer in layers)
        loss.backward()
        optimizer.step()
        steps += 1
    return image.detach(), steps


def main():
    torch.set_num_threads(1)
    encoder = Encoder().eval()
    layers = ["block1", "block2"]
    stimuli = 10
    for n in range(stimuli):
        with torch.no_grad():
            truth = torch.rand(1, 3, 160, 160)
            hidden = encoder.block1(encoder.stem(truth))
            target = {"block1": hidden, "block2": encoder.block2(hidden)}
        image, steps = reconstruct(target, encoder, layers, SECONDS / stimuli)
        print(n, steps, float(image.mean()), flush=True)


if __name__ == "__main__":
    main()
