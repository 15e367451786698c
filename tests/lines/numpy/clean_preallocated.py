"""Results go into an array that is there from the beginning, of a modest size."""
import time

import numpy as np

STEPS = 900
results = np.zeros((STEPS, 2000), dtype=np.float32)
rng = np.random.default_rng(9)
for step in range(STEPS):
    sample = rng.standard_normal((200, 2000))
    results[step] = sample.mean(axis=0)
    if step % 25 == 0:
        print(f"step {step}: {results[step].std():.4f}", flush=True)
    time.sleep(.01)
