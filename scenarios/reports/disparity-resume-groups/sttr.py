"""A small network for disparity"""

from torch import nn


class StereoNet(nn.Module):
    def __init__(self, channels=24, blocks=3):
        super().__init__()
        layers = [nn.Conv2d(6, channels, 5, stride=2, padding=2)]
        for _ in range(blocks):
            layers += [nn.BatchNorm2d(channels), nn.ReLU(), nn.Conv2d(channels, channels, 3, padding=1)]
        self.backbone = nn.Sequential(*layers)
        self.regression = nn.Sequential(nn.ReLU(), nn.ConvTranspose2d(channels, 1, 4, stride=2, padding=1))

    def forward(self, pictures):
        return self.regression(self.backbone(pictures))[:, 0]


def parameter_groups(model, norms):
    """Backbone and regression have rates of their own; norms are part of the backbone, or frozen"""
    frozen = set()
    if norms == "frozen":
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.eval()
                frozen.update(module.parameters())
                module.requires_grad_(False)
    backbone = [one for one in model.backbone.parameters() if one not in frozen]
    return [{"params": backbone, "lr": 1e-4}, {"params": list(model.regression.parameters()), "lr": 4e-4}]
