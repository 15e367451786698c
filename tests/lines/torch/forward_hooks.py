"""A hook on a layer that keeps what comes out of it."""
import time

import torch
from torch import nn


class Probe:
    def __init__(self, layer):
        self.seen = []
        layer.register_forward_hook(self.hook)

    def hook(self, layer, inputs, output):
        self.seen.append(output.detach().clone())  # the line


model = nn.Sequential(nn.Linear(20, 800), nn.ReLU(), nn.Linear(800, 1))
probe = Probe(model[1])
optimizer = torch.optim.SGD(model.parameters(), lr=.001)
for step in range(2000):
    loss = model(torch.randn(192, 20)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step}: {loss.item():.4f}, {len(probe.seen)} outputs", flush=True)
    time.sleep(.02)
