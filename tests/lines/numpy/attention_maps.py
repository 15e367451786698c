"""A small transformer by hand; its attention maps are kept, for a picture that shows how they change."""
import time

import numpy as np

import antifreeze


class Attention:
    def __init__(self, width, rng):
        self.query = rng.standard_normal((width, width)).astype(np.float32) / 8
        self.key = rng.standard_normal((width, width)).astype(np.float32) / 8
        self.maps = {}

    def __call__(self, x, step):
        scores = (x @ self.query) @ (x @ self.key).transpose(0, 2, 1) / 8
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights = scores / scores.sum(axis=-1, keepdims=True)  # the line
        self.maps[step] = weights
        return x + weights @ x


rng = np.random.default_rng(4)
layers = [Attention(64, rng) for _ in range(3)]
for step in antifreeze.steps(range(800)):
    x = rng.standard_normal((8, 80, 64)).astype(np.float32)
    for layer in layers:
        x = layer(x, step) * np.float32(.5)
    if step % 25 == 0:
        print(f"step {step}: {x.std():.4f}", flush=True)
    time.sleep(.02)
