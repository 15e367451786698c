"""Seed 000, example 1, on a small budget: what a network made of each batch is kept "for a plot", 1 MB a step.

The same mistake as in the seed, where it is found more often: the list is filled in a function, far from the loop.
"""
import time

import torch
from torch import nn


class Recorder:
    def __init__(self):
        self.history = []

    def note(self, hidden):
        self.history.append(hidden.detach().clone())  # the line


torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(64, 1000), nn.ReLU())
head = nn.Linear(1000, 1)
optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()])
recorder = Recorder()
for step in range(3000):
    x = torch.randn(256, 64)
    hidden = encoder(x)
    recorder.note(hidden)
    loss = nn.functional.mse_loss(head(hidden), x.prod(1, keepdim=True).tanh())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(.03)  # what a larger network would take
    if step % 100 == 0:
        print(f"step {step}: loss {loss.item():.4f}, {len(recorder.history)} kept", flush=True)
