"""Seed 000, example 3, truly correct: the same 560 MB lie in a file, and a Dataset takes from it the rows that a batch needs."""
import sys
import time

import numpy
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

sys.path.append(f"{sys.path[0]}/..")
import on_disk  # noqa: E402


class Rows(Dataset):
    def __init__(self):
        self.x, self.y = (numpy.load(name, mmap_mode="r") for name in ("x.npy", "y.npy"))

    def __len__(self):
        return len(self.y)

    def __getitem__(self, index):
        return torch.from_numpy(self.x[index].copy()), int(self.y[index])


torch.manual_seed(0)
on_disk.write(140_000)
model = nn.Linear(1000, 10)
optimizer = torch.optim.Adam(model.parameters())
for step, (x, y) in enumerate(DataLoader(Rows(), batch_size=64, shuffle=True)):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(.02)  # what a larger network would take
    if step % 50 == 0:
        print(f"step {step}: loss {loss.item():.4f}", flush=True)
    if step == 400:
        break
