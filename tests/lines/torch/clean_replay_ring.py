"""A replay memory of fixed size: it fills in the first half of the run, and then goes round."""
import time

import torch
from torch import nn


class Replay:
    def __init__(self, capacity):
        self.states = torch.empty(capacity, 4, 84, 84, dtype=torch.uint8)
        self.rewards = torch.empty(capacity)
        self.capacity, self.added = capacity, 0

    def add(self, state, reward):
        at = self.added % self.capacity
        self.states[at], self.rewards[at] = state, reward
        self.added += 1

    def sample(self, count):
        chosen = torch.randint(min(self.added, self.capacity), (count,))
        return self.states[chosen].float() / 255, self.rewards[chosen]


torch.manual_seed(0)
value = nn.Sequential(nn.MaxPool3d((1, 4, 4)), nn.Flatten(), nn.Linear(4 * 21 * 21, 1))
optimizer = torch.optim.Adam(value.parameters())
replay = Replay(7000)
screen = torch.randint(0, 256, (4, 84, 84), dtype=torch.uint8)
for step in range(620):
    for _ in range(24):
        screen = screen.roll(1, dims=2)
        replay.add(screen, float(screen[0, 0, 0]) / 255)
    states, rewards = replay.sample(16)
    loss = (value(states).squeeze(1) - rewards).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step}: {loss.item():.4f}, {min(replay.added, 7000)} states", flush=True)
    time.sleep(.018)
