"""Rollouts for policy gradients; when the buffer is cleared, one of its lists is forgotten."""
import time

import torch
from torch import nn


class Game:
    """The last four frames of a screen that flickers."""

    def reset(self):
        self.frames = torch.zeros(4, 42, 42)
        return self.frames

    def step(self, action):
        frame = torch.rand(1, 42, 42)
        self.frames = torch.cat([self.frames[1:], frame])  # the line
        return self.frames, float(frame[0, 0, action])


class Rollout:
    def __init__(self):
        self.states, self.actions, self.rewards, self.next_states = [], [], [], []

    def add(self, state, action, reward, next_state):
        self.states.append(state)
        self.actions.append(action)
        self.rewards.append(reward)
        self.next_states.append(next_state)

    def clear(self):
        self.states, self.actions, self.rewards = [], [], []


torch.manual_seed(0)
policy = nn.Sequential(nn.Flatten(), nn.Linear(4 * 42 * 42, 6))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
game, rollout = Game(), Rollout()
state = game.reset()
for update in range(720):
    for _ in range(40):
        with torch.no_grad():
            action = int(policy(state[None]).argmax())
        following, reward = game.step(action)
        rollout.add(state, action, reward, following)
        state = following
    chosen = policy(torch.stack(rollout.states)).log_softmax(dim=1)[torch.arange(40), torch.tensor(rollout.actions)]
    loss = -(chosen * torch.tensor(rollout.rewards)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    rollout.clear()
    if update % 20 == 0:
        print(f"update {update}: {loss.item():.4f}", flush=True)
    time.sleep(.015)
