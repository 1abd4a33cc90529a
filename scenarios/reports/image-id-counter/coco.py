"""Annotations of a data set, results for it, and their evaluation"""

import collections


def overlap(one, other):
    width = min(one[0] + one[2], other[0] + other[2]) - max(one[0], other[0])
    height = min(one[1] + one[3], other[1] + other[3]) - max(one[1], other[1])
    shared = max(0.0, width) * max(0.0, height)
    return shared / (one[2] * one[3] + other[2] * other[3] - shared + 1e-9)


class COCO:
    def __init__(self, dataset):
        self.dataset = dataset
        self.by_image = collections.defaultdict(list)
        for annotation in dataset["annotations"]:
            self.by_image[annotation["image_id"]].append(annotation)

    def get_image_ids(self):
        return [image["id"] for image in self.dataset["images"]]

    def load_results(self, results):
        assert isinstance(results, list), "results is not an array of objects"
        numbers = [result["image_id"] for result in results]
        assert set(numbers) == (set(numbers) & set(self.get_image_ids())), (
            "Results do not correspond to current coco set"
        )
        return COCO({"images": self.dataset["images"], "annotations": results})


def evaluate(truth, found, threshold=0.3):
    """The share of the boxes that some detection of their image covers"""
    covered, total = 0, 0
    for number in truth.get_image_ids():
        detections = sorted(found.by_image[number], key=lambda one: -one["score"])[:20]
        for annotation in truth.by_image[number]:
            total += 1
            covered += any(overlap(annotation["bbox"], one["bbox"]) > threshold for one in detections)
    return covered / max(1, total)
