"""A copy of the model whenever it is a little better than before."""
import copy
import time

import torch
from torch import nn


class Keeper:
    def __init__(self):
        self.best, self.states = float("inf"), []

    def look(self, model, loss):
        if loss < self.best + .5:
            self.best = min(self.best, loss)
            self.states.append(copy.deepcopy(model.state_dict()))  # the line


model = nn.Sequential(nn.Linear(128, 700), nn.Tanh(), nn.Linear(700, 128))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
keeper = Keeper()
for step in range(2000):
    x = torch.randn(32, 128)
    loss = (model(x) - x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    keeper.look(model, loss.item())
    if step % 20 == 0:
        print(f"step {step}: {loss.item():.4f}, {len(keeper.states)} kept", flush=True)
    time.sleep(.02)
