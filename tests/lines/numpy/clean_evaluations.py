"""The predictions of an epoch are kept until it ends, looked at once, and given up."""
import time

import numpy as np

rng = np.random.default_rng(22)
weights = rng.standard_normal((100, 500))
for epoch in range(5):
    predictions = []
    for batch in range(140):
        x = rng.standard_normal((250, 100))
        predictions.append(np.tanh(x @ weights))
        weights *= .9999
        if batch % 20 == 0:
            print(f"epoch {epoch}, batch {batch}: {predictions[-1].std():.4f}", flush=True)
        time.sleep(.02)
    print(f"epoch {epoch}: {np.mean([part.mean() for part in predictions]):.5f}", flush=True)
    del predictions
