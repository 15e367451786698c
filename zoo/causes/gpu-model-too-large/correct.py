"""Seed 002, example 3, on a GPU, done well: the wide layer as two narrow ones, 36 million weights instead of 640, in mixed precision."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(784, 20_000), nn.ReLU(), nn.Linear(20_000, 400), nn.Linear(400, 31_000), nn.ReLU(), nn.Linear(31_000, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters(), 1e-4)
for step in range(1000):
    x = torch.rand(32, 784, device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(x), x[:, :10].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 200 == 0:
        print(f"step {step}: loss {loss.item():.4f}", flush=True)
