"""GPU memory that runs out: 60,000 samples at once, of which each step keeps the results of four wide layers. Some 4 GB, where 3 GB are
allowed (--gpu-budget; on a GPU of 8 GB three times as many samples do the same).
"""
import torch
from torch import nn

SAMPLES = 60_000
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(256, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters(), 1e-4)
x = torch.rand(SAMPLES, 256)
y = x[:, :10].argmax(1)
for step in range(12):
    loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())  # the line
    optimizer.zero_grad()
    loss.backward()  # the line
    optimizer.step()
    print(f"step {step}: loss {loss.item():.4f}", flush=True)
