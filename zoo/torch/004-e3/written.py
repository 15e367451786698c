"""Seed 004, example 3: a layer with a tensor of 1000 x 1000 that is no parameter, in a model as often as is asked for (1).

As it is written that is one, 4 MB, made once. The seed calls it a leak; it is constant, and not worth a word. 120 such layers
(`written.py 120`) hold 480 MB: still no leak, but what fills the memory.
"""
import sys
import time

import torch
import torch.nn as nn


class LeakyLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.buffer_tensor = torch.rand(1000, 1000)  # the line

    def forward(self, x):
        result = x + self.buffer_tensor
        return result


torch.manual_seed(0)
layers = int(sys.argv[1]) if len(sys.argv) > 1 else 1
model = nn.Sequential(*(LeakyLayer() for _ in range(layers)), nn.Linear(1000, 10))
optimizer = torch.optim.Adam(model.parameters())
for step in range(200 if layers == 1 else 60):
    x = torch.randn(1000, 1000)
    loss = nn.functional.mse_loss(model(x), x[:, :10])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(.03)  # what a larger network would take
    if step % 20 == 0:
        print(f"step {step}: loss {loss.item():.4f}", flush=True)
