"""A data set of float64 where float32 would do, and a normalised copy beside it."""
import time

import numpy as np


def load(rows, columns):
    return np.random.rand(rows, columns)  # the line


def normalise(data):
    mean, std = data.mean(axis=0), data.std(axis=0)
    out = (data - mean) / std  # the line
    return out


def main():
    raw = load(40_000, 500)
    data = normalise(raw)
    w = np.zeros(500)
    for step in range(500):
        batch = data[step * 64 % 39_000:][:64]
        w += .01 * batch.T @ (raw[:64, 0] - batch @ w) / 64
        if step % 20 == 0:
            print(f"step {step}: {np.abs(w).max():.4f}", flush=True)
        time.sleep(.03)


main()
