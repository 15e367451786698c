"""Every input is remembered (seed 000, example 1)."""
import time

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(400, 10)
optimizer = torch.optim.SGD(model.parameters(), lr=.01)
history = []
for i in range(3000):
    x = torch.rand(400, 400)  # the line
    history.append(x)
    loss = model(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if i % 20 == 0:
        print(f"step {i}: loss {loss.item():.4f}", flush=True)
    time.sleep(.015)
