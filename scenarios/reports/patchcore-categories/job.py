"""Benchmark of anomaly detection: a model for each category of products, one after the other"""

import time

import torch
from patchcore import FeatureExtractor, PatchcoreModel

torch.set_num_threads(1)
CATEGORIES = ("bottle", "cable", "capsule", "carpet", "grid", "hazelnut")
TRAIN, TEST, BATCH, CORESET = 112, 32, 4, 60
EPOCH_S, TEST_S = 2.4, 0.8


def images(count, pattern, generator, defects=None):
    """Pictures of a product, of which some have a spot"""
    picture = pattern + 0.05 * torch.randn(count, 3, 224, 224, generator=generator)
    if defects is not None:
        picture[defects, :, 90:110, 60:80] += 1.5
    return picture


def auroc(scores, defects):
    good, bad = scores[~defects], scores[defects]
    return (bad[:, None] > good[None]).float().mean().item()


class Engine:
    def __init__(self, extractor):
        self.extractor = extractor

    def run(self, category, seed):
        generator = torch.Generator().manual_seed(seed)
        pattern = torch.rand(1, 3, 28, 28, generator=generator)
        pattern = torch.nn.functional.interpolate(pattern, size=(224, 224), mode="bicubic")
        model = PatchcoreModel(self.extractor).train()
        begin = time.monotonic()
        with torch.no_grad():
            for done in range(0, TRAIN, BATCH):
                batch = images(BATCH, pattern, generator)
                model(batch)
                # The views for the threshold, as many as there is time for
                while time.monotonic() < begin + EPOCH_S * (done + BATCH) / TRAIN:
                    self.extractor(batch.flip(3))
            collected = sum(one.numel() * 4 for one in model.embedding_store)
            model.subsample_embedding(CORESET)
            model.eval()
            fitted = time.monotonic()
            scores, defects = [], []
            while len(scores) < TEST // BATCH or time.monotonic() < fitted + TEST_S:
                marked = torch.rand(BATCH, generator=generator) < 0.5
                scores.append(model(images(BATCH, pattern, generator, marked)))
                defects.append(marked)
        result = auroc(torch.cat(scores), torch.cat(defects))
        print(
            f"{category}: {collected / 1e6:.0f} MB of embeddings, bank of {len(model.memory_bank)}, "
            f"AUROC {result:.3f}, {time.monotonic() - begin:.1f} s",
            flush=True,
        )
        return result


def main():
    torch.manual_seed(0)
    engine = Engine(FeatureExtractor().eval())
    results = [engine.run(category, seed) for seed, category in enumerate(CATEGORIES)]
    print(f"mean AUROC {sum(results) / len(results):.3f}", flush=True)


if __name__ == "__main__":
    main()
