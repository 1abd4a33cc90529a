"""Open vocabulary detection: each image is searched for all categories of the data set"""

import argparse
import time

import torch
import torch.distributed
from lvis_eval import LvisEvaluator
from torch import nn

CATEGORIES, QUERIES, CHUNK, DETECTIONS, IMAGE_S = 1203, 100, 60, 2000, 0.011


class Detector(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, 24, 5, stride=4, padding=2), nn.ReLU(), nn.Conv2d(24, width, 3, stride=2, padding=1), nn.ReLU()
        )
        self.queries = nn.Parameter(torch.randn(QUERIES, width))
        self.box = nn.Linear(width, 4)
        self.register_buffer("text", torch.randn(CATEGORIES, width))

    def features(self, image):
        return self.backbone(image)[0].flatten(1)

    def forward(self, features):
        hidden = torch.softmax(self.queries @ features, 1) @ features.t()
        boxes = self.box(hidden).sigmoid()
        # The captions name some categories each
        logits = [hidden @ names.t() for names in self.text.split(CHUNK)]
        return torch.cat(logits, 1).sigmoid(), boxes


class PostProcess:
    def __call__(self, probabilities, boxes):
        scores, places = probabilities.flatten().topk(DETECTIONS)
        centre, size = boxes[places // CATEGORIES].chunk(2, 1)
        corners = torch.cat([centre - size / 2, centre + size / 2], 1)
        return {"scores": scores, "labels": places % CATEGORIES, "boxes": corners * 640}


def read_image(number):
    generator = torch.Generator().manual_seed(number)
    return torch.rand(1, 3, 96, 96, generator=generator)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--images", type=int)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    torch.manual_seed(0)
    model, postprocess = Detector().eval(), PostProcess()
    truth = torch.randint(0, CATEGORIES, (args.images,)).tolist()
    evaluator = LvisEvaluator(CATEGORIES, truth)
    begin = time.monotonic()
    with torch.no_grad():
        for done, number in enumerate(range(rank, args.images, world), 1):
            image = read_image(number)
            features, scales = model.features(image), 1
            # More scales, where there is time for them
            while time.monotonic() - begin < done * IMAGE_S:
                size = 96 - 8 * (scales % 6)
                scaled = nn.functional.interpolate(image, size=(size, size), mode="bilinear")
                pooled = nn.functional.adaptive_avg_pool1d(model.features(scaled)[None], features.shape[1])[0]
                features, scales = features + pooled, scales + 1
            evaluator.update({number: postprocess(*model(features / scales))})
            if rank == 0 and done % 100 == 0:
                print(f"Test: [{done}/{args.images // world}] {time.monotonic() - begin:.1f} s", flush=True)
    print(f"rank {rank}: {len(evaluator.predictions)} images, gathering", flush=True)
    evaluator.synchronize_between_processes()
    if rank == 0:
        print(f"AP {evaluator.summarize():.4f}", flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
