"""Batches of utterances of about the same length, made in a process of its own"""

import multiprocessing

import numpy as np

RATE, HOP, BINS, ROUND = 16_000, 400, 48, 32


class Corpus:
    """One file of 16-bit samples, and where each utterance begins and how long it is"""

    def __init__(self, path, starts, lengths):
        self.path, self.starts, self.lengths = path, starts, lengths

    def __len__(self):
        return len(self.starts)

    def load(self, index, source):
        """A waveform with a gain and some noise, and the energies of its frames in each band"""
        with open(self.path, "rb") as file:
            file.seek(2 * int(self.starts[index]))
            samples = np.fromfile(file, np.int16, int(self.lengths[index]))
        wave = samples.astype(np.float32) * np.float32(source.uniform(0.5, 1.5) / 32768)
        wave += source.standard_normal(len(wave), np.float32) / 500
        frames = wave[: len(wave) // HOP * HOP].reshape(-1, HOP)
        energies = np.log1p(np.abs(np.fft.rfft(frames, axis=1)[:, : 4 * BINS])).reshape(len(frames), BINS, 4).mean(2)
        return wave, energies.astype(np.float32)


class BucketLoader:
    def __init__(self, corpus, batch_size, bucket_batches, seed):
        self.corpus, self.batch_size, self.bucket_batches = corpus, batch_size, bucket_batches
        self.source = np.random.default_rng(seed)

    def _collate(self, samples):
        longest = max(len(energies) for _, energies in samples)
        frames = -(-longest // ROUND) * ROUND
        batch = {
            "waves": np.zeros((len(samples), frames * HOP), np.float32),
            "energies": np.zeros((len(samples), frames, BINS), np.float32),
            "frames": np.array([len(energies) for _, energies in samples]),
        }
        for row, (wave, energies) in enumerate(samples):
            batch["waves"][row, : len(energies) * HOP] = wave[: len(energies) * HOP]
            batch["energies"][row, : len(energies)] = energies
        return batch

    def __iter__(self):
        while True:
            pool = []
            for _ in range(self.bucket_batches * self.batch_size):
                pool.append(self.corpus.load(int(self.source.integers(len(self.corpus))), self.source))
            pool.sort(key=lambda sample: len(sample[1]))
            batches = [pool[i : i + self.batch_size] for i in range(0, len(pool), self.batch_size)]
            del pool
            self.source.shuffle(batches)
            while batches:
                yield self._collate(batches.pop())


def _produce(loader, connection):
    for batch in loader:
        connection.send(batch)


class SubprocessLoader:
    def __init__(self, loader):
        context = multiprocessing.get_context("fork")
        self.connection, there = context.Pipe(duplex=False)
        self.process = context.Process(target=_produce, args=(loader, there), daemon=True)
        self.process.start()
        there.close()

    def __iter__(self):
        while True:
            yield self.connection.recv()

    def stop(self):
        self.process.terminate()
        self.process.join()
