"""A fresh Adam for each cycle of the learning rate; those of the cycles before stay in the list."""
import math
import time

import torch
from torch import nn


class Cycles:
    def __init__(self, model, length, rate):
        self.model, self.length, self.rate = model, length, rate
        self.optimizers = []

    def step(self, step):
        if step % self.length == 0:
            self.optimizers.append(torch.optim.Adam(self.model.parameters(), lr=self.rate))
        optimizer = self.optimizers[-1]
        for group in optimizer.param_groups:
            group["lr"] = self.rate * .5 * (1 + math.cos(math.pi * (step % self.length) / self.length))
        optimizer.step()  # the line
        optimizer.zero_grad()


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(400, 1200), nn.ReLU(), nn.Linear(1200, 400))
cycles = Cycles(model, 8, 1e-3)
for step in range(880):
    x = torch.randn(16, 400)
    loss = (model(x) - x).pow(2).mean()
    loss.backward()
    cycles.step(step)
    if step % 40 == 0:
        print(f"step {step}: {loss.item():.4f}, cycle {len(cycles.optimizers)}", flush=True)
    time.sleep(.015)
