"""Shared memory that is never given back: each batch is put where other processes could see it, and none is dropped. 1 MB a step."""
import time

import torch

model = torch.nn.Linear(1000, 1)
optimizer = torch.optim.Adam(model.parameters(), .001)
published = []


def publish(x):
    published.append(x.clone().share_memory_())  # the line


for step in range(1500):
    x = torch.rand(256, 1000)
    loss = torch.nn.functional.mse_loss(model(x), x[:, :4].sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    publish(x)
    if step % 50 == 0:
        print(f"step {step}: loss {loss.item():.4f}", flush=True)
    time.sleep(.04)
