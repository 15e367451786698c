"""The data set on the GPU: 500,000 rows of 1000 numbers are put there whole, 2 GB of the 3 that are allowed. A step with 4096 of them has
room; the evaluation, with 60,000 at once, has not (seeds 002, example 3, and 003, example 3, on a GPU).
"""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.rand(500_000, 1000, device="cuda")  # the line
y = x[:, :10].argmax(1)
model = nn.Sequential(nn.Linear(1000, 4096), nn.ReLU(), nn.Linear(4096, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters(), 1e-4)


def evaluate():
    with torch.no_grad():
        return (model(x[:60_000]).argmax(1) == y[:60_000]).float().mean().item()


for step in range(200):
    rows = torch.randint(0, len(x), (4096,), device="cuda")
    loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step}: loss {loss.item():.4f}", flush=True)
print(f"right: {evaluate():.1%}")
