"""Seed 004, example 2, as it is written: a product of 4 MB is made in every step, and its name given to the next one.

The seed calls it a potential leak. It is none: when the name is given away, the product is freed. Memory stays where it is.
"""
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(20_000, 50)
dataloader = DataLoader(TensorDataset(inputs, inputs[:, :1] * inputs[:, 1:2]), batch_size=1000)
model = nn.Sequential(nn.Linear(50, 100), nn.ReLU(), nn.Linear(100, 1))
loss_fn = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(30):
    for i, (batch, targets) in enumerate(dataloader):
        outputs = model(batch)
        loss = loss_fn(outputs, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(.01)  # what a larger network would take
        intermediate_result = torch.matmul(outputs, outputs.T)
    print(f"epoch {epoch}: loss {loss.item():.4f}", flush=True)
