"""A generator draws pictures all the while, and all of them are kept for a film of how it learned."""
import time

import numpy as np


class Generator:
    def __init__(self, rng):
        self.first = rng.standard_normal((32, 128)).astype(np.float32) * .1
        self.second = rng.standard_normal((128, 64 * 64 * 3)).astype(np.float32) * .1

    def draw(self, noise):
        return np.tanh(np.maximum(noise @ self.first, 0) @ self.second)


def to_pictures(drawn):
    return ((drawn + 1) * 127.5).astype(np.uint8).reshape(-1, 64, 64, 3)  # the line


rng = np.random.default_rng(12)
generator = Generator(rng)
film = []
for step in range(700):
    drawn = generator.draw(rng.standard_normal((48, 32)).astype(np.float32))
    generator.second *= np.float32(.999)
    film.append(to_pictures(drawn))
    if step % 20 == 0:
        print(f"step {step}: {drawn.mean():.4f}, {len(film)} parts of the film", flush=True)
    time.sleep(.028)
