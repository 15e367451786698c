"""Large temporaries in every step, nothing kept."""
import time

import numpy as np

rng = np.random.default_rng(2)
w = rng.standard_normal((400, 400))
for step in range(600):
    a = rng.standard_normal((300, 400)) @ w
    w += 1e-6 * (a.T @ a)[:400, :400]
    w /= np.abs(w).max()
    if step % 20 == 0:
        print(f"step {step}: {w.std():.4f}", flush=True)
    time.sleep(.01)
