"""The training of this folder: a small regression, for so many seconds."""
import random
import time


def train(seconds, beat=None):
    weights, numbers, step, end = [0.] * 50, random.Random(0), 0, time.monotonic() + seconds
    while time.monotonic() < end:
        x = [numbers.random() for _ in weights]
        error = sum(w * v for w, v in zip(weights, x)) - sum(x[:3])
        weights = [w - .01 * error * v for w, v in zip(weights, x)]
        if step % 20_000 == 0:
            print(f"step {step}: loss {error * error:.5f}", flush=True)
        step += 1
        if beat:
            beat()
