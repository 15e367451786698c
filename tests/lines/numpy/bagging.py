"""A bag of regressions, each with samples drawn anew; they hold on to what they were fitted with."""
import time

import numpy as np

import antifreeze


class Member:
    def __init__(self, x, y, rng):
        rows = rng.integers(0, len(x), len(x))
        self.x = x[rows]  # the line
        self.y = y[rows]
        self.weights = np.linalg.lstsq(self.x[:300, :20], self.y[:300], rcond=None)[0]

    def predict(self, x):
        return x[:, :20] @ self.weights


rng = np.random.default_rng(14)
x = rng.standard_normal((1500, 60))
y = x[:, 0] - 2 * x[:, 1] + rng.standard_normal(1500)
bag = []
for number in antifreeze.steps(range(750)):
    bag.append(Member(x, y, rng))
    if number % 25 == 0:
        error = np.mean([member.predict(x[:50]) - y[:50] for member in bag[-20:]])
        print(f"member {number}: {error:.4f}", flush=True)
    time.sleep(.025)
