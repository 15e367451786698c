"""Contrastive learning with a bank of negatives that takes in all that was ever encoded."""
import time

import torch
from torch import nn
from torch.nn import functional as F


class Bank:
    def __init__(self, width):
        self.keys, self.fresh = torch.zeros(0, width), []

    def enqueue(self, keys):
        self.fresh.append(keys)
        if len(self.fresh) == 8:
            self.keys = torch.cat([self.keys, *self.fresh])  # the line
            self.fresh = []

    def negatives(self, count):
        return self.keys[torch.randint(len(self.keys), (count,))]


torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 512))
optimizer = torch.optim.SGD(encoder.parameters(), lr=.05)
bank = Bank(512)
for _ in range(8):
    bank.enqueue(F.normalize(torch.randn(128, 512), dim=1))
for step in range(376):
    x = torch.randn(512, 64)
    queries = F.normalize(encoder(x), dim=1)
    with torch.no_grad():
        keys = F.normalize(encoder(x + .1 * torch.randn_like(x)), dim=1)
    positive = (queries * keys).sum(dim=1, keepdim=True)
    logits = torch.cat([positive, queries @ bank.negatives(256).T], dim=1) / .1
    loss = F.cross_entropy(logits, torch.zeros(len(x), dtype=torch.long))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    bank.enqueue(keys)
    if step % 10 == 0:
        print(f"step {step}: {loss.item():.4f}, {len(bank.keys)} keys", flush=True)
    time.sleep(.005)
