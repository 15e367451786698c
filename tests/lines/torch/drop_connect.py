"""A layer that drops connections at random, and registers each mask it draws so that a run can be told again."""
import time

import torch
from torch import nn
from torch.nn import functional as F


class DropConnect(nn.Linear):
    def __init__(self, inputs, outputs, keep):
        super().__init__(inputs, outputs)
        self.keep, self.drawn = keep, 0

    def forward(self, x):
        name = f"mask_{self.drawn}"
        self.drawn += 1
        self.register_buffer(name, torch.empty_like(self.weight, requires_grad=False).bernoulli_(self.keep))  # the line
        return F.linear(x, self.weight * getattr(self, name) / self.keep, self.bias)


torch.manual_seed(0)
model = nn.Sequential(DropConnect(300, 800, .8), nn.ReLU(), DropConnect(800, 80, .8))
optimizer = torch.optim.SGD(model.parameters(), lr=.01)
for step in range(560):
    x = torch.randn(64, 300)
    loss = F.mse_loss(model(x), x[:, :80])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step}: {loss.item():.4f}, {len(list(model.buffers()))} masks", flush=True)
    time.sleep(.018)
