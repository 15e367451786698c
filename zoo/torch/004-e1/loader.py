"""Seed 004, example 1, with antifreeze.Loader: the file's rows as tensors over 32 MB that are taken once and never grow."""
import sys
import time

import torch
from torch import nn

import antifreeze

sys.path.append(f"{sys.path[0]}/..")
import on_disk  # noqa: E402

torch.manual_seed(0)
on_disk.write(50_000)
model = nn.Sequential(nn.Linear(1000, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters())
for step, x in enumerate(antifreeze.Loader("x.npy", batch=64, budget="32MiB", seed=1)):
    loss = nn.functional.cross_entropy(model(x), x[:, :2].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(.01)  # what a larger network would take
    if step % 100 == 0:
        print(f"step {step}: loss {loss.item():.4f}", flush=True)
