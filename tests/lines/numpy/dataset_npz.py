"""Loads a whole archive, though only some of its rows are used at a time."""
import os
import tempfile
import time

import numpy as np


def make(path):
    with open(path, "wb") as f:
        np.lib.format.write_array_header_1_0(f, {"descr": "<f4", "fortran_order": False, "shape": (60_000, 800)})
        for part in range(60):
            np.full((1000, 800), part, dtype=np.float32).tofile(f)


class Samples:
    def __init__(self, path):
        self.x = np.load(path)  # the line

    def batch(self, number):
        return self.x[number * 32 % len(self.x):][:32]


with tempfile.TemporaryDirectory() as folder:
    make(os.path.join(folder, "samples.npy"))
    samples = Samples(os.path.join(folder, "samples.npy"))
w = np.zeros((800, 10), dtype=np.float32)
for step in range(500):
    w += .001 * samples.batch(step).T @ np.ones((32, 10), dtype=np.float32)
    if step % 20 == 0:
        print("step", step, w[0, 0], flush=True)
    time.sleep(.03)
