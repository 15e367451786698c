"""Validation without torch.no_grad(): each loss that is kept holds the whole graph that led to it."""
import time

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(50, 1200)
        self.two = nn.Linear(1200, 10)

    def forward(self, x):
        hidden = torch.tanh(self.one(x))  # the line
        return self.two(hidden)


def train_step(net, optimizer, x, y):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


net = Net()
optimizer = torch.optim.Adam(net.parameters())
validation_losses = []
for step in range(2000):
    x, y = torch.randn(64, 50), torch.randint(0, 10, (64,))
    train_step(net, optimizer, x, y)
    validation_losses.append(nn.functional.cross_entropy(net(x), y))
    if step % 20 == 0:
        print(f"step {step}: {validation_losses[-1]:.4f}", flush=True)
    time.sleep(.01)
