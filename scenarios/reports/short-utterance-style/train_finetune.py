"""Fine-tunes a speech model with styles on recordings of one's own"""

import time

import torch
from torch import nn

from meldataset import build_dataloader, write_list
from models import Decoder, StyleEncoder

EPOCHS, BATCH_SIZE, RECORDINGS, STEP_S, LOG_INTERVAL = 2, 2, 300, 0.15, 20


def styles(encoder, mels, mel_lengths):
    found = []
    for number in range(len(mel_lengths)):
        mel = mels[number, :, : mel_lengths[number]]
        found.append(encoder(mel.unsqueeze(0).unsqueeze(1)))
    return torch.cat(found)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    write_list("train_list.txt", RECORDINGS)
    loader = build_dataloader("train_list.txt", BATCH_SIZE, num_workers=2)
    encoder, decoder = StyleEncoder(), Decoder()
    optimizer = torch.optim.AdamW([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
    for epoch in range(EPOCHS):
        total = 0
        for step, (mels, mel_lengths, texts, _) in enumerate(loader, 1):
            until, passes = time.monotonic() + STEP_S, 0
            optimizer.zero_grad()
            while passes == 0 or time.monotonic() < until:
                style = styles(encoder, mels, mel_lengths)
                loss = nn.functional.l1_loss(decoder(texts, style, mels.shape[2]), mels)
                loss.backward()
                passes += 1
            nn.utils.clip_grad_norm_([*encoder.parameters(), *decoder.parameters()], 5.0)
            optimizer.step()
            total += loss.item()
            if step % LOG_INTERVAL == 0:
                print(f"Epoch [{epoch + 1}/{EPOCHS}], Step [{step}/{len(loader)}], Loss: {total / LOG_INTERVAL:.5f}")
                total = 0


if __name__ == "__main__":
    main()
