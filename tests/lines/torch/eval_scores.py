"""Scores for early stopping, taken in model.eval() as if that turned gradients off."""
import time

import torch
from torch import nn


class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(32, 32)
        self.key = nn.Linear(32, 32)
        self.out = nn.Linear(32, 1)

    def forward(self, x):
        attention = torch.softmax(self.query(x) @ self.key(x).transpose(1, 2), dim=-1)  # the line
        return self.out(attention @ x).mean(dim=(1, 2))


def validate(model, held_out):
    model.eval()
    score = -(model(held_out) - held_out.mean(dim=(1, 2))).pow(2).mean()
    model.train()
    return score


torch.manual_seed(0)
ranker = Ranker()
optimizer = torch.optim.Adam(ranker.parameters(), lr=1e-3)
held_out = torch.randn(8, 196, 32)
scores = []
for step in range(840):
    x = torch.randn(4, 64, 32)
    loss = (ranker(x) - x.mean(dim=(1, 2))).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 2 == 0:
        scores.append(validate(ranker, held_out))
    if step % 20 == 0:
        print(f"step {step}: loss {loss.item():.4f}, best {max(scores):.4f}", flush=True)
    time.sleep(.018)
