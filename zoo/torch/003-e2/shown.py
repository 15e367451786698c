"""Seed 003, example 2, repaired so that it runs: `i` counts the batches. The gradients are still set to zero before each of them.

So a step has the gradient of its last batch alone, divided by 4: no accumulation, a quarter of the learning rate, and nobody is told.
"""
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(32_000, 20)
train_loader = DataLoader(TensorDataset(inputs, inputs[:, :2].argmax(1)), batch_size=32)
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 2))
criterion = nn.CrossEntropyLoss()
accumulation_steps = 4
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(2):
    for i, (batch, labels) in enumerate(train_loader):
        optimizer.zero_grad()  # the line
        loss = criterion(model(batch), labels) / accumulation_steps
        loss.backward()
        if (i + 1) % accumulation_steps == 0:
            optimizer.step()
            time.sleep(.02)  # what a larger network would take
        if i % 200 == 0:
            print(f"epoch {epoch}, batch {i}: loss {loss.item() * accumulation_steps:.4f}", flush=True)
