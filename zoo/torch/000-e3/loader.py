"""Seed 000, example 3, with antifreeze.Loader: the same 560 MB of a file through 32 MB of memory, shuffled."""
import sys
import time

import torch
from torch import nn

import antifreeze

sys.path.append(f"{sys.path[0]}/..")
import on_disk  # noqa: E402

torch.manual_seed(0)
on_disk.write(140_000)
model = nn.Linear(1000, 10)
optimizer = torch.optim.Adam(model.parameters())
loader = antifreeze.Loader("x.npy", labels="y.npy", batch=64, budget="32MiB", seed=1)
for step, (x, y) in enumerate(loader):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(.02)  # what a larger network would take
    if step % 50 == 0:
        print(f"step {step}: loss {loss.item():.4f}", flush=True)
    if step == 400:
        break
