"""A recurrent network that carries its state from batch to batch and never detaches it."""
import time

import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(32, 256)
        self.head = nn.Linear(256, 32)

    def forward(self, x, state):
        state = self.cell(x, state)  # the line
        return self.head(state.detach()), state


reader = Reader()
optimizer = torch.optim.Adam(reader.head.parameters())
state = torch.zeros(128, 256)
for step in range(2500):
    x = torch.randn(128, 32)
    out, state = reader(x, state)
    loss = (out - x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 25 == 0:
        print(f"step {step}: {loss.item():.4f}", flush=True)
    time.sleep(.01)
