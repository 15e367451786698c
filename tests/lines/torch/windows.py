"""A time series of a few megabytes, cut into windows that overlap, all of them made at once."""
import time

import torch
from torch import nn

WINDOW = 256


def cut(series):
    windows = series.unfold(0, WINDOW, 1)[:-1].contiguous()  # the line
    return windows, series[WINDOW:]


torch.manual_seed(0)
series = torch.sin(torch.arange(380_000) / 50) + .1 * torch.randn(380_000)
inputs, targets = cut(series)
model = nn.Sequential(nn.Linear(WINDOW, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters())
for step in range(550):
    chosen = torch.randint(len(inputs), (128,))
    loss = (model(inputs[chosen]).squeeze(1) - targets[chosen]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 25 == 0:
        print(f"step {step}: {loss.item():.5f}", flush=True)
    time.sleep(.025)
