"""Seed 000, example 1, "correct": a rolling buffer of 100 tensors. It is correct, and grows to 400 MB in its first 100 steps.

A guard that saw only growth would call this a leak and foretell its end. 400 steps of the seed's 10000.
"""
import time

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(1000, 10)
optimizer = torch.optim.Adam(model.parameters())
history_size = 100
history = []
for i in range(400):
    x = torch.randn(1000, 1000)
    if len(history) >= history_size:
        del history[0]
    history.append(x)
    loss = nn.functional.mse_loss(model(x), x[:, :10])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(.02)  # what a larger network would take
    del x
    if i % 50 == 0:
        print(f"step {i}: loss {loss.item():.4f}, {len(history)} kept", flush=True)
