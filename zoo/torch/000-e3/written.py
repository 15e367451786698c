"""Seed 000, example 3, both forms as they are written: a million rows of a thousand numbers, 4 GB, made before the first step.

The "correct" form has pin_memory=True (`written.py pin_memory`). Its text says that the data are then loaded in batches: they are not.

The labels are the seed's, drawn at random, so that there is nothing to learn from them: the loss stays at log 10.
"""
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

data = torch.randn(1000000, 1000)  # the line
labels = torch.randint(0, 10, (1000000,))
dataset = TensorDataset(data, labels)
dataloader = DataLoader(dataset, batch_size=64, pin_memory="pin_memory" in sys.argv)

model = nn.Linear(1000, 10)
optimizer = torch.optim.SGD(model.parameters(), lr=.01)
for step, (x, y) in enumerate(dataloader):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(.02)  # what a larger network would take
    if step % 50 == 0:
        print(f"step {step}: loss {loss.item():.4f}", flush=True)
    if step == 400:
        break
