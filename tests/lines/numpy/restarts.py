"""Restarts with a new optimizer each, and all of them are kept with their moments."""
import time

import numpy as np


class Adam:
    def __init__(self, shape, rate):
        self.rate, self.steps = rate, 0
        self.mean = np.zeros(shape)  # the line
        self.square = np.zeros(shape)  # the line

    def step(self, weights, gradient):
        self.steps += 1
        self.mean += .1 * (gradient - self.mean)
        self.square += .001 * (gradient ** 2 - self.square)
        weights -= self.rate * self.mean / (np.sqrt(self.square) + 1e-8)


class Search:
    def __init__(self):
        self.optimizers = []
        self.x = np.random.default_rng(7).standard_normal((40, 300))

    def restart(self, number):
        weights = np.full((300, 120), .01 * number)
        optimizer = Adam(weights.shape, rate=.1 / (1 + number))
        self.optimizers.append(optimizer)
        for _ in range(3):
            optimizer.step(weights, self.x.T @ (self.x @ weights) / 40)
        return np.abs(weights).mean()


search = Search()
for number in range(850):
    size = search.restart(number)
    if number % 25 == 0:
        print(f"restart {number}: {size:.4f}", flush=True)
    time.sleep(.02)
