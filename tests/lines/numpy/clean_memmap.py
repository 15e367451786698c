"""A file of samples that is mapped, not read: pages come and go as they are used."""
import os
import tempfile
import time

import numpy as np

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "samples.bin")
    with open(path, "wb") as f:
        for part in range(60):
            np.full((1000, 800), part, dtype=np.float32).tofile(f)
    samples = np.memmap(path, dtype=np.float32, mode="r", shape=(60_000, 800))
    w = np.zeros((800, 10), dtype=np.float32)
    for step in range(600):
        batch = np.array(samples[step * 100:step * 100 + 100])
        w += .001 * batch.T @ np.ones((100, 10), dtype=np.float32)
        if step % 20 == 0:
            print("step", step, w[0, 0], flush=True)
        time.sleep(.025)
