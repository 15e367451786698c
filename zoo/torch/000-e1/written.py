"""Seed 000, example 1, "incorrect", as it is written: a tensor of 4 MB is kept from every step, 40 GB in 10000 steps.

The training that the seed leaves out is a linear layer that learns to copy the first ten columns.
"""
import time

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(1000, 10)
optimizer = torch.optim.Adam(model.parameters())
history = []
for i in range(10000):
    x = torch.randn(1000, 1000)  # the line
    history.append(x)
    loss = nn.functional.mse_loss(model(x), x[:, :10])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(.04)  # what a larger network would take
    if i % 50 == 0:
        print(f"step {i}: loss {loss.item():.4f}", flush=True)
