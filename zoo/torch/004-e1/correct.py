"""Seed 004, example 1, truly correct: float32 from the beginning, in a file, and read from it one chunk of batches at a time."""
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

sys.path.append(f"{sys.path[0]}/..")
import on_disk  # noqa: E402


class Chunks(IterableDataset):
    def __iter__(self):
        rows = np.load("x.npy", mmap_mode="r")
        for start in range(0, len(rows), 1000):
            yield from torch.from_numpy(rows[start:start + 1000].copy())


torch.manual_seed(0)
on_disk.write(50_000)
model = nn.Sequential(nn.Linear(1000, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters())
for step, x in enumerate(DataLoader(Chunks(), batch_size=64)):
    loss = nn.functional.cross_entropy(model(x), x[:, :2].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(.01)  # what a larger network would take
    if step % 100 == 0:
        print(f"step {step}: loss {loss.item():.4f}", flush=True)
