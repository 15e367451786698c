"""total_loss += loss: the sum holds the graphs of all its parts until it is used."""
import time

import torch
from torch import nn

model = nn.Sequential(nn.Linear(50, 1000), nn.ReLU(), nn.Linear(1000, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
total_loss = 0
for step in range(2000):
    x = torch.randn(100, 50)
    out = model(x)  # the line
    loss = (out - x.mean(dim=1, keepdim=True)).pow(2).mean()
    total_loss = total_loss + loss
    if step % 4 == 0:
        optimizer.zero_grad()
        model(x[:8]).mean().backward()
        optimizer.step()
    if step % 20 == 0:
        print(f"step {step}: {float(total_loss) / (step + 1):.4f}", flush=True)
    time.sleep(.015)
