"""Grad-CAM: which part of an image speaks for a category"""

import torch
from torch import nn

torch.set_num_threads(1)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList(
            [
                nn.Sequential(nn.Conv2d(3, 24, 7, stride=2, padding=3), nn.ReLU()),
                nn.Sequential(nn.Conv2d(24, 16, 3, stride=2, padding=1), nn.ReLU()),
                nn.Sequential(
                    nn.Conv2d(16, 96, 3, padding=1),
                    nn.ReLU(),
                    nn.Conv2d(96, 96, 3, padding=1),
                    nn.ReLU(),
                    nn.Conv2d(96, 96, 3, padding=1),
                    nn.ReLU(),
                ),
                nn.Sequential(nn.Conv2d(96, 128, 3, stride=2, padding=1), nn.ReLU()),
            ]
        )
        self.head = nn.Linear(128, 12)

    def forward(self, x):
        for stage in self.stages:
            x = stage(x)
        return self.head(x.mean((2, 3)))


def make_network():
    torch.manual_seed(4)
    network = Network().eval()
    for parameter in network.parameters():
        parameter.requires_grad_(False)
    return network


class ActivationsAndGradients:
    """The activations of a layer and their gradients, in the order of the forward pass"""

    def __init__(self, model, target_layer):
        self.model = model
        self.gradients = []
        self.activations = []
        self.handles = [target_layer.register_forward_hook(self.save_activation)]
        self.handles.append(target_layer.register_forward_hook(self.save_gradient))

    def save_activation(self, module, inputs, output):
        self.activations.append(output.cpu().detach())

    def save_gradient(self, module, inputs, output):
        if not output.requires_grad:
            return

        def store(grad):
            self.gradients = [grad.cpu().detach()] + self.gradients

        output.register_hook(store)

    def __call__(self, x):
        self.gradients = []
        self.activations = []
        return self.model(x)

    def release(self):
        for handle in self.handles:
            handle.remove()


class GradCAM:
    def __init__(self, model, target_layer):
        self.model = model
        self.activations_and_grads = ActivationsAndGradients(model, target_layer)

    def __call__(self, image, target_category):
        scores = self.activations_and_grads(image.clone().requires_grad_(True))
        scores[0, target_category].backward()
        gradients = self.activations_and_grads.gradients[-1]
        activations = self.activations_and_grads.activations[-1]
        weights = gradients.mean((2, 3), keepdim=True)
        heat = torch.relu((weights * activations).sum(1))[0]
        heat = heat - heat.min()
        return (heat / (heat.max() + 1e-7)).numpy()
