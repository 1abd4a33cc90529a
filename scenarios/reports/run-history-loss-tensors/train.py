"""Trains a small convolutional network, and logs what the loss functions return."""

import torch
import tracker

STEPS = 1700

torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 3, 2, 1),
    torch.nn.ReLU(),
    torch.nn.Conv2d(16, 32, 3, 2, 1),
    torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(4),
    torch.nn.Flatten(),
    torch.nn.Linear(512, 20),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
criterion = torch.nn.CrossEntropyLoss()
held_out = torch.randn(16, 3, 48, 48), torch.randint(0, 20, (16,))
run = tracker.Run()
for step in range(STEPS):
    images, labels = torch.randn(64, 3, 48, 48), torch.randint(0, 20, (64,))
    loss = criterion(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    row = {"loss": loss}
    if step % 5 == 0:
        model.eval()
        row["valid_loss"] = criterion(model(held_out[0]), held_out[1])
        model.train()
    run.log(row)
    if step % 200 == 0:
        print(f"step {step}: {loss.item():.3f} {row['valid_loss'].item():.3f}", flush=True)
print(run.finish())
