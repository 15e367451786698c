"""GPU fragmentation: a bank of features is filled batch by batch, and every fifth is kept. What is kept lies scattered: of each piece of
20 MB that torch took from the driver a fifth is in use, and nothing of it can be given back. 2.1 GB of 3 are taken, 0.5 in use, and the
410 MB that a layer of the next step wants in one piece are nowhere.
"""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters(), 1e-3)


def step_with(samples):
    x = torch.rand(samples, 256, device="cuda")
    loss = nn.functional.cross_entropy(model(x), x[:, :10].argmax(1))  # the line
    optimizer.zero_grad()
    loss.backward()  # the line
    optimizer.step()
    return loss.item()


for step in range(50):
    step_with(1000)
features = [torch.rand(1000, 1024, device="cuda") for _ in range(500)]  # 4 MB each
bank = features[::5]
del features
print(f"{torch.cuda.memory_allocated() >> 20} MB in use, {torch.cuda.memory_reserved() >> 20} MB taken", flush=True)
for step in range(20):
    print(f"step {step}: loss {step_with(100_000):.4f}, {len(bank)} in the bank", flush=True)
