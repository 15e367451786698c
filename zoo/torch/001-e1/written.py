"""Seed 001, example 1: a monitor by psutil, beside a training as its text says. It looks and warns; it does no harm, and no good.

The seed's loop has no end. Here it is a thread that ends with the training.
"""
import threading
import time

import psutil
import torch
from torch import nn


def watch():
    while True:
        cpu_percent = psutil.cpu_percent(interval=1)
        ram_percent = psutil.virtual_memory().percent
        print(f"CPU Usage: {cpu_percent:.1f}%, RAM Usage: {ram_percent:.1f}%", flush=True)
        if cpu_percent > 95 or ram_percent > 95:
            print("WARNING: High resource utilization detected!", flush=True)
        time.sleep(5)


threading.Thread(target=watch, daemon=True).start()
torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(1, 8, 5), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 24 * 24, 10))
optimizer = torch.optim.Adam(model.parameters())
kinds = torch.randn(10, 1, 28, 28)
for step in range(300):
    y = torch.randint(10, (64,))
    loss = nn.functional.cross_entropy(model(kinds[y] + torch.randn(64, 1, 28, 28)), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(.03)  # what a larger network would take
    if step % 50 == 0:
        print(f"step {step}: loss {loss.item():.4f}", flush=True)
