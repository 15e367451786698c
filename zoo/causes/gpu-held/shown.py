"""A GPU that is held by someone else: this training needs a quarter of the GPU, and another program has nearly all of it."""
import time

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
samples = torch.cuda.get_device_properties(0).total_memory // 4 // (4 * 1024 * 4)
for step in range(200):
    x = torch.rand(1000 if step < 100 else samples, 256, device="cuda")
    loss = nn.functional.cross_entropy(model(x), x[:, :10].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(.05)  # the first steps are small: what it holds is seen
    if step % 20 == 0:
        print(f"step {step}: loss {loss.item():.4f}", flush=True)
