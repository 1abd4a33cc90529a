"""Classifiers of animals on crops from a camera trap"""

import torch
from torch import nn
from torch.utils.data import DataLoader


class Stage(nn.Module):
    def __init__(self, width_in, width_out):
        super().__init__()
        self.conv1 = nn.Conv2d(width_in, width_out, 3, stride=2, padding=1, bias=False)
        self.conv2 = nn.Conv2d(width_out, width_out, 3, padding=1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(width_out), nn.BatchNorm2d(width_out)

    def forward(self, x):
        x = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(x + self.norm2(self.conv2(x)))


class TIMM_BaseClassifierInference:
    CLASS_NAMES = ("badger", "bear", "chamois", "fox", "hare", "lynx", "marmot", "red deer", "wild boar", "wolf")

    def __init__(self):
        stages = [Stage(3, 12), Stage(12, 24), Stage(24, 48)]
        self.model = nn.Sequential(*stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, len(self.CLASS_NAMES)))
        self.model.eval()

    def results_generation(self, logits, image_ids):
        confidences = torch.softmax(logits, 1).detach()
        top, places = confidences.max(1)
        return [
            {"img_id": image_id, "prediction": self.CLASS_NAMES[place], "confidence": value}
            for image_id, place, value in zip(image_ids, places.tolist(), top.tolist())
        ]

    def single_image_classification(self, image, image_id):
        with torch.no_grad():
            return self.results_generation(self.model(image[None]), [image_id])[0]

    def batch_image_classification(self, crops, batch_size, num_workers, after_batch):
        loader = DataLoader(crops, batch_size=batch_size, num_workers=num_workers)
        total_logits, total_paths = [], []
        for done, (images, paths) in enumerate(loader, 1):
            total_logits.append(self.model(images))
            total_paths.append(paths)
            after_batch(done, len(loader), images)
        all_logits = torch.cat(total_logits, dim=0).cpu()
        return self.results_generation(all_logits, [path for paths in total_paths for path in paths])
