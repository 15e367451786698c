"""Seed 002, example 3, on a GPU and in torch: no batch is small enough. 640 million weights are 2.6 GB, as much again are their gradients, and
Adam keeps two more numbers for each: 10 GB, where 3 GB are allowed (--gpu-budget).
"""
import torch
from torch import nn

torch.manual_seed(0)
with torch.device("cuda"):
    model = nn.Sequential(nn.Linear(784, 20_000), nn.ReLU(), nn.Linear(20_000, 31_000), nn.ReLU(), nn.Linear(31_000, 10))
optimizer = torch.optim.Adam(model.parameters(), 1e-4)
for step in range(100):
    x = torch.rand(32, 784, device="cuda")
    loss = nn.functional.cross_entropy(model(x), x[:, :10].argmax(1))  # the line
    optimizer.zero_grad()
    loss.backward()  # the line
    optimizer.step()  # the line
    print(f"step {step}: loss {loss.item():.4f}", flush=True)
