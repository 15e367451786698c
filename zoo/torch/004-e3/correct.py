"""Seed 004, example 3, truly correct: what the layer adds is one learned number a column, and 120 of them are half a megabyte."""
import time

import torch
import torch.nn as nn


class Shift(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        return x + self.shift


torch.manual_seed(0)
model = nn.Sequential(*(Shift(1000) for _ in range(120)), nn.Linear(1000, 10))
optimizer = torch.optim.Adam(model.parameters())
for step in range(80):
    x = torch.randn(200, 1000)
    loss = nn.functional.mse_loss(model(x), x[:, :10] + 1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(.05)  # what a larger network would take
    if step % 20 == 0:
        print(f"step {step}: loss {loss.item():.4f}", flush=True)
