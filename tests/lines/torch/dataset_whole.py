"""A TensorDataset of everything (seed 000, example 3)."""
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_loader():
    data = torch.randn(120_000, 1000)  # the line
    labels = torch.randint(0, 10, (120_000,))
    return DataLoader(TensorDataset(data, labels), batch_size=64)


loader = make_loader()
model = nn.Linear(1000, 10)
optimizer = torch.optim.Adam(model.parameters())
criterion = nn.CrossEntropyLoss()
for step, (x, y) in enumerate(loader):
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step}: {loss.item():.4f}", flush=True)
    if step == 400:
        break
    time.sleep(.03)
