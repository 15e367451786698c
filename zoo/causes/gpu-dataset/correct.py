"""The same rows in the machine's RAM, from which each batch goes to the GPU when it is needed: 16 MB at a time."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.rand(500_000, 1000)
y = x[:, :10].argmax(1)
model = nn.Sequential(nn.Linear(1000, 4096), nn.ReLU(), nn.Linear(4096, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters(), 1e-4)
for step in range(200):
    rows = torch.randint(0, len(x), (4096,))
    loss = nn.functional.cross_entropy(model(x[rows].cuda()), y[rows].cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step}: loss {loss.item():.4f}", flush=True)
