"""All gradients of all steps, for a plot of their norms."""
import time

import torch
from torch import nn

model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=.01)
gradients = []
for step in range(2000):
    x, y = torch.randn(32, 256), torch.randint(0, 10, (32,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    gradients.append([p.grad.clone() for p in model.parameters()])  # the line
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step}: {loss.item():.4f}", flush=True)
    time.sleep(.015)
