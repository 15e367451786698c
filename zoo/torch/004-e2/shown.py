"""Seed 004, example 2, where it is a leak: the product of every step goes into a list, and with each the graph that it came from.

700 x 700 numbers, 2 MB a step. `.detach()` would let go of the graph, but still keep the numbers.
"""
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(14_000, 50)
dataloader = DataLoader(TensorDataset(inputs, inputs[:, :1] * inputs[:, 1:2]), batch_size=700)
model = nn.Sequential(nn.Linear(50, 100), nn.ReLU(), nn.Linear(100, 1))
loss_fn = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters())
similarities = []
for epoch in range(100):
    for i, (batch, targets) in enumerate(dataloader):
        outputs = model(batch)
        loss = loss_fn(outputs, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(.04)  # what a larger network would take
        similarities.append(torch.matmul(outputs, outputs.T))  # the line
    print(f"epoch {epoch}: loss {loss.item():.4f}, {len(similarities)} kept", flush=True)
