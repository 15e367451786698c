"""Training as it should be: losses as numbers, validation without gradients."""
import time

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(200, 500), nn.ReLU(), nn.Linear(500, 10))
optimizer = torch.optim.Adam(model.parameters())
losses = []
for step in range(800):
    x, y = torch.randn(128, 200), torch.randint(0, 10, (128,))
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if step % 50 == 0:
        with torch.no_grad():
            value = nn.functional.cross_entropy(model(x), y)
        print(f"step {step}: {value:.4f}, mean {sum(losses) / len(losses):.4f}", flush=True)
    time.sleep(.015)
