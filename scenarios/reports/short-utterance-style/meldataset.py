"""Recordings of a list with their mel spectrograms, padded to batches"""

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

HOP, WINDOW, MELS = 300, 1200, 80


def write_list(path, recordings):
    """Stands in for the list of the reporter's own recordings: names, padded lengths in frames, and texts"""
    numbers = np.random.default_rng(2)
    with open(path, "w") as file:
        for number in range(recordings):
            frames, text = 16 * int(numbers.integers(6, 12)), "and so we went on, along the river, until it was dark"
            if number == 236:
                frames, text = 61, "Yes."
            file.write(f"wavs/{number:04}.wav|{frames}|{text}\n")


class FilePathDataset(Dataset):
    def __init__(self, path):
        with open(path) as file:
            self.data_list = [line.rstrip("\n").split("|") for line in file]
        numbers = np.random.default_rng(0)
        self.filters = numbers.random((MELS, WINDOW // 2 + 1)).astype(np.float32)

    def __len__(self):
        return len(self.data_list)

    def __getitem__(self, index):
        _, frames, text = self.data_list[index]
        sound = np.random.default_rng(index).standard_normal(int(frames) * HOP + WINDOW - HOP).astype(np.float32)
        windows = np.lib.stride_tricks.sliding_window_view(sound, WINDOW)[::HOP]
        spectrum = np.abs(np.fft.rfft(windows * np.hanning(WINDOW))).astype(np.float32)
        mel = (np.log(1e-5 + self.filters @ spectrum.T) + 4) / 4
        return torch.from_numpy(mel), torch.tensor([ord(letter) % 128 for letter in text])


def collate(batch):
    mel_lengths = torch.tensor([mel.shape[1] for mel, _ in batch])
    text_lengths = torch.tensor([len(text) for _, text in batch])
    mels = torch.zeros(len(batch), MELS, int(mel_lengths.max()))
    texts = torch.zeros(len(batch), int(text_lengths.max()), dtype=torch.long)
    for number, (mel, text) in enumerate(batch):
        mels[number, :, : mel.shape[1]] = mel
        texts[number, : len(text)] = text
    return mels, mel_lengths, texts, text_lengths


def build_dataloader(path, batch_size, num_workers):
    # the list is in random order
    return DataLoader(FilePathDataset(path), batch_size, num_workers=num_workers, collate_fn=collate, drop_last=True)
