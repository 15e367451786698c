"""The weights are saved as a file is, but into memory, and one for each step."""
import io
import time

import numpy as np

import antifreeze


class Saver:
    def __init__(self):
        self.saved = {}

    def save(self, step, weights):
        buffer = io.BytesIO()
        np.save(buffer, weights)  # the line
        self.saved[step] = buffer

    def load(self, step):
        self.saved[step].seek(0)
        return np.load(self.saved[step])


saver = Saver()
weights = np.linspace(-1, 1, 50_000).reshape(250, 200)
for step in range(1050):
    antifreeze.step()
    weights -= .01 * np.sin(weights * step)
    saver.save(step, weights)
    if step % 50 == 0:
        print(f"step {step}: {saver.load(step).std():.4f}", flush=True)
    time.sleep(.022)
