"""The norm of the gradient is logged with create_graph=True, for a penalty that is switched on only later."""
import time

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(256, 1100), nn.Tanh(), nn.Linear(1100, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=.01)
parameters = list(model.parameters())
norms, penalty_from = [], 100_000


def squared_norm(loss):
    gradients = torch.autograd.grad(loss, parameters, create_graph=True)  # the line
    return sum(g.pow(2).sum() for g in gradients)


for step in range(540):
    x = torch.randn(16, 256)
    loss = nn.functional.mse_loss(model(x), x[:, :4])
    norms.append(squared_norm(loss))
    if step >= penalty_from:
        loss = loss + .1 * norms[-1]
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step}: loss {loss.item():.4f}, norm {norms[-1].item():.4f}", flush=True)
    time.sleep(.02)
