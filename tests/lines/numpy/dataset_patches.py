"""All pieces of a few pictures, cut out before the training begins: each pixel is in 144 of them."""
import time

import numpy as np


class Patches:
    def __init__(self, pictures, side):
        self.parts = []
        for picture in pictures:
            windows = np.lib.stride_tricks.sliding_window_view(picture, (side, side))
            self.parts.append(windows.copy())  # the line

    def batch(self, number):
        part = self.parts[number % len(self.parts)]
        return part[number * 5 % len(part)].reshape(part.shape[1], -1)


rng = np.random.default_rng(16)
patches = Patches([rng.random((180, 180), dtype=np.float32) for _ in range(16)], 12)
w = rng.standard_normal((144, 12)).astype(np.float32) * np.float32(.1)
for step in range(560):
    batch = patches.batch(step)
    w += np.float32(.001) * batch.T @ (batch @ w) / len(batch)
    w /= np.linalg.norm(w, axis=0)
    if step % 25 == 0:
        print(f"step {step}: {w[0, 0]:.4f}", flush=True)
    time.sleep(.025)
