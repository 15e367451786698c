"""Layers with large tensors that are no parameters (seed 004, example 3, scaled)."""
import time

import torch
from torch import nn


class Biased(nn.Module):
    def __init__(self, side):
        super().__init__()
        self.buffer_tensor = torch.rand(side, side)  # the line
        self.linear = nn.Linear(64, 64)

    def forward(self, x):
        return self.linear(x) + self.buffer_tensor[:x.shape[0], :64]


model = nn.Sequential(*[Biased(4000) for _ in range(8)])
optimizer = torch.optim.SGD(model.parameters(), lr=.01)
for step in range(400):
    loss = model(torch.randn(32, 64)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step}: {loss.item():.4f}", flush=True)
    time.sleep(.03)
