"""Seed 004, example 1, on a small budget: 50000 rows, 400 MB as float64 and 200 MB as float32, both kept through the training."""
import time

import numpy as np
import torch
from torch import nn

rows = np.random.default_rng(0)
dataset = rows.random((50_000, 1000))  # the line
inputs = torch.tensor(dataset, dtype=torch.float32)
targets = inputs[:, :2].argmax(1)

model = nn.Sequential(nn.Linear(1000, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters())
for step in range(400):
    chosen = torch.randint(len(inputs), (64,))
    loss = nn.functional.cross_entropy(model(inputs[chosen]), targets[chosen])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(.02)  # what a larger network would take
    if step % 50 == 0:
        print(f"step {step}: loss {loss.item():.4f}", flush=True)
