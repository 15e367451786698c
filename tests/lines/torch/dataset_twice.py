"""The whole data set as float64, and again as a tensor (seed 004, example 1)."""
import time

import numpy as np
import torch

dataset = np.random.rand(60_000, 1000)  # the line
dataset_tensor = torch.tensor(dataset, dtype=torch.float32)
model = torch.nn.Linear(1000, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=.01)
for step in range(400):
    batch = dataset_tensor[step * 64:step * 64 + 64]
    loss = model(batch).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step}: {loss.item():.5f}", flush=True)
    time.sleep(.03)
