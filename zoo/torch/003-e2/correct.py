"""Seed 003, example 2, truly correct: the gradients of 4 batches add up, then one step is made, and only then are they set to zero."""
import time

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 2))
criterion = nn.CrossEntropyLoss()
accumulation_steps = 4
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)


def train(batches):
    for i, batch in enumerate(batches, 1):
        loss = criterion(model(batch), batch[:, :2].argmax(1))
        (loss / accumulation_steps).backward()
        if i % accumulation_steps == 0:
            optimizer.step()
            time.sleep(.02)  # what a larger network would take
            optimizer.zero_grad()
        if i % 200 == 0:
            print(f"batch {i}: loss {loss.item():.4f}", flush=True)


train(torch.randn(64_000, 20).split(32))
