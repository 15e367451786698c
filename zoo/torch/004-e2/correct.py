"""Seed 004, example 2, truly correct: of each product only its mean is kept, as a number of Python's."""
import time

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(50, 100), nn.ReLU(), nn.Linear(100, 1))
optimizer = torch.optim.Adam(model.parameters())
similarities = []


@torch.no_grad()
def similarity(outputs):
    return torch.matmul(outputs, outputs.T).mean().item()


for step in range(500):
    batch = torch.randn(1000, 50)
    outputs = model(batch)
    loss = nn.functional.mse_loss(outputs, batch[:, :1] * batch[:, 1:2])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(.01)  # what a larger network would take
    similarities.append(similarity(outputs))
    if step % 50 == 0:
        print(f"step {step}: loss {loss.item():.4f}, similarity {similarities[-1]:.4f}", flush=True)
