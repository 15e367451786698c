"""Transitions for reinforcement learning as tensors, in a buffer without a limit."""
import random
import time

import torch
from torch import nn

policy = nn.Linear(4096, 4)
optimizer = torch.optim.Adam(policy.parameters())


class Buffer:
    def __init__(self):
        self.transitions = []

    def push(self, state, action, reward):
        self.transitions.append((state.clone(), action, reward))  # the line

    def sample(self, count):
        return random.sample(self.transitions, min(count, len(self.transitions)))


buffer = Buffer()
state = torch.randn(4096)
for step in range(2500):
    for _ in range(30):
        state.mul_(.99).add_(torch.randn(4096) * .1)
        buffer.push(state, random.randrange(4), random.random())
    batch = buffer.sample(32)
    q = policy(torch.stack([s for s, _, _ in batch]))
    loss = (q[:, 0] - torch.tensor([r for _, _, r in batch])).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 25 == 0:
        print(f"step {step}: {len(buffer.transitions)} transitions", flush=True)
    time.sleep(.01)
