"""The features of all samples are worked out ahead of time, into one array that is as large as they are many."""
import time

import numpy as np

import antifreeze


def embed_all(samples, projection):
    features = np.empty((len(samples), projection.shape[1]))  # the line
    for start in range(0, len(samples), 500):
        features[start:start + 500] = np.tanh(samples[start:start + 500] @ projection)
    return features


rng = np.random.default_rng(18)
samples = rng.standard_normal((36_000, 16), dtype=np.float32)
features = embed_all(samples, rng.standard_normal((16, 1000), dtype=np.float32))
w = np.zeros(1000)
for step in range(550):
    antifreeze.step()
    rows = rng.integers(0, len(features), 64)
    batch = features[rows]
    w -= .001 * batch.T @ (batch @ w - samples[rows, 0]) / 64
    if step % 25 == 0:
        print(f"step {step}: {np.abs(w).mean():.5f}", flush=True)
    time.sleep(.025)
