"""A replay buffer for reinforcement learning, without a limit."""
import random
import time

import numpy as np


class Environment:
    def __init__(self):
        self.rng = np.random.default_rng(11)

    def step(self, action):
        observation = self.rng.integers(0, 255, (84, 84, 4), dtype=np.uint8)  # the line
        return observation, float(action == 2)


class Agent:
    def __init__(self):
        self.memory = []

    def act(self, observation):
        return int(observation[0, 0, 0]) % 4

    def remember(self, *transition):
        self.memory.append(transition)

    def learn(self):
        return sum(reward for _, _, reward in random.sample(self.memory, min(8, len(self.memory))))


environment, agent = Environment(), Agent()
observation, reward = environment.step(0)
for step in range(14_000):
    action = agent.act(observation)
    following, reward = environment.step(action)
    agent.remember(observation, action, reward)
    observation = following
    if step % 4 == 0:
        agent.learn()
        time.sleep(.005)
    if step % 200 == 0:
        print(f"step {step}: {len(agent.memory)} remembered", flush=True)
