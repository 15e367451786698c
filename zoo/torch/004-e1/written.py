"""Seed 004, example 1, as it is written: a million rows as float64, 8 GB, and a copy of them as float32, 4 GB more.

The seed calls it a leak. It is none: nothing grows with the steps. It is a dataset in memory, twice, the larger one never used again.
The layer that learns to tell which of the first two numbers is larger is ours.
"""
import time

import numpy as np
import torch
from torch import nn

dataset = np.random.rand(1000000, 1000)  # the line
dataset_tensor = torch.tensor(dataset, dtype=torch.float32)

model = nn.Linear(1000, 2)
optimizer = torch.optim.Adam(model.parameters())
for step, x in enumerate(dataset_tensor.split(64)[:400]):
    loss = nn.functional.cross_entropy(model(x), x[:, :2].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(.02)  # what a larger network would take
    if step % 50 == 0:
        print(f"step {step}: loss {loss.item():.4f}", flush=True)
