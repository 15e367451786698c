"""Losses are summed over an episode, with all their graphs, and go back at its end: memory rises and falls with it."""
import time

import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(32, 2400), nn.ReLU(), nn.Linear(2400, 4))
optimizer = torch.optim.SGD(policy.parameters(), lr=1e-4)
returns = []
for episode in range(14):
    state, total = torch.randn(256, 32), 0
    for _ in range(40):
        chosen = policy(state).log_softmax(dim=1)
        reward = state[:, :4].softmax(dim=1)
        total = total - (chosen * reward).sum(dim=1).mean()
        state = state + .1 * torch.randn_like(state)
        time.sleep(.022)
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    returns.append(total.item())
    print(f"episode {episode}: {returns[-1]:.4f}", flush=True)
