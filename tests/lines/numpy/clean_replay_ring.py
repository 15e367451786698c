"""A replay memory of a fixed size: it is there from the beginning, but fills only as the agent plays."""
import time

import numpy as np

import antifreeze


class Memory:
    def __init__(self, room):
        self.frames = np.empty((room, 84, 84), dtype=np.uint8)
        self.rewards = np.zeros(room)
        self.count = 0

    def add(self, frame, reward):
        at = self.count % len(self.frames)
        self.frames[at], self.rewards[at] = frame, reward
        self.count += 1

    def sample(self, rng, size):
        rows = rng.integers(0, min(self.count, len(self.frames)), size)
        return self.frames[rows], self.rewards[rows]


rng = np.random.default_rng(20)
memory = Memory(22_000)
for step in antifreeze.steps(range(700)):
    for _ in range(80):
        memory.add(rng.integers(0, 255, (84, 84), dtype=np.uint8), rng.random())
    frames, rewards = memory.sample(rng, 32)
    if step % 25 == 0:
        print(f"step {step}: {memory.count} seen, {rewards.mean():.3f}", flush=True)
    time.sleep(.02)
