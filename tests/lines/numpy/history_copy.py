"""Gradient descent that keeps all weights it ever had."""
import time

import numpy as np

rng = np.random.default_rng(1)
x = rng.standard_normal((200, 500))
y = rng.standard_normal((200, 100))
w = np.zeros((500, 100))
history = []
for step in range(3000):
    gradient = x.T @ (x @ w - y) / len(x)
    w -= .01 * gradient
    history.append(w.copy())  # the line
    if step % 20 == 0:
        print(f"step {step}: {np.abs(gradient).mean():.5f}", flush=True)
    time.sleep(.025)
