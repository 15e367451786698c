"""The same update from parts of 4000 samples, whose gradients add up: 15 of them, each counted by its share."""
import torch
from torch import nn

SAMPLES, PART = 60_000, 4000
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(256, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters(), 1e-4)
x = torch.rand(SAMPLES, 256)
y = x[:, :10].argmax(1)
for step in range(12):
    optimizer.zero_grad()
    total = 0
    for start in range(0, SAMPLES, PART):
        part = slice(start, start + PART)
        loss = nn.functional.cross_entropy(model(x[part].cuda()), y[part].cuda()) * PART / SAMPLES
        loss.backward()
        total += loss.item()
    optimizer.step()
    print(f"step {step}: loss {total:.4f}", flush=True)
