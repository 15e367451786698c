"""Samples as lists of Python floats: each takes 32 bytes, where 4 would do. And then an array of all of them."""
import random
import time

import numpy as np

random.seed(5)


def sample():
    return [random.random() for _ in range(100)]  # the line


samples = [sample() for _ in range(60_000)]
x = np.array(samples)
w = np.zeros(100)
for step in range(500):
    rows = x[step * 100 % 59_000:][:100]
    w -= .01 * rows.T @ (rows @ w - 1) / 100
    if step % 20 == 0:
        print(f"step {step}: {w.mean():.4f}", flush=True)
    time.sleep(.03)
