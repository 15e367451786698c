"""Seed 001, example 2, on a GPU, done well: who runs out of memory goes on with half of the batch, and fails where nothing fits."""
import sys

import torch
from torch import nn


def train(batch):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 10)).cuda()
    optimizer = torch.optim.Adam(model.parameters(), 1e-4)
    x = torch.rand(batch, 256)
    y = x[:, :10].argmax(1)
    for step in range(500):
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"batch {batch}, step {step}: loss {loss.item():.4f}", flush=True)


batch = 60_000
while batch >= 100:
    try:
        train(batch)
        sys.exit()
    except torch.OutOfMemoryError:
        print(f"a batch of {batch} does not fit", flush=True)
    batch //= 4
sys.exit("not even 100 samples fit")
