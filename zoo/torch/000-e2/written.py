"""Seed 000, example 2, both forms as they are written: a layer of 1000 x 1000 and batches of 1024, or of as many as are asked for: 64.

The seed calls 1024 too large. Such a batch is 4 MB, and the step takes some 20 MB with its gradients: nothing is wrong with it on any
machine that can load PyTorch. shown.py has the size at which it is.
"""
import sys

import torch
import torch.nn as nn
import torch.optim as optim

torch.manual_seed(0)
model = nn.Linear(1000, 1000)
optimizer = optim.Adam(model.parameters())
batch_size = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
for step in range(60):
    x = torch.randn(batch_size, 1000)
    loss = nn.functional.mse_loss(model(x), x.roll(1, 1))  # it learns to turn each row by one
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step}: loss {loss.item():.4f}", flush=True)
