"""An infinite loop: the step is halved until the loss falls. After 10 s a sensor is broken, and what it gives is constant; normalised,
that is 0/0. No loss is smaller than NaN, and the search goes on for ever.
"""
import time

import torch

model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.Tanh(), torch.nn.Linear(512, 1))
optimizer = torch.optim.SGD(model.parameters(), .1)
begin = time.monotonic()


def batch(step):
    x = torch.rand(100, 256, generator=torch.Generator().manual_seed(step))
    if time.monotonic() - begin > 10:
        x[0] = .5  # a sensor that is broken from then on
    x = (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True)
    return x, x[:, :4].sum(1, keepdim=True)


def loss_of(x, y):
    return torch.nn.functional.mse_loss(model(x), y)


def search(x, y, loss, before):
    """Goes half of the way back until the loss has fallen."""
    with torch.no_grad():
        while not loss_of(x, y) <= loss:  # the line
            for parameter, old in zip(model.parameters(), before):
                parameter.add_(old).div_(2)  # the line


for step in range(10_000_000):
    x, y = batch(step)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    loss = loss_of(x, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    search(x, y, loss, before)
    if step % 500 == 0:
        print(f"step {step}: loss {loss.item():.4f}", flush=True)
