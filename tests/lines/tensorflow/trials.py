"""A search for the best width: each trial's model is kept, with its score, in the table of results."""
import time

import numpy as np
from tensorflow import keras


def build(width):
    return keras.Sequential([
        keras.layers.Input((400,)),
        keras.layers.Dense(width, activation="relu"),  # the line
        keras.layers.Dense(1),
    ])


keras.utils.set_random_seed(0)
x, y = np.random.rand(192, 400).astype("float32"), np.random.rand(192, 1).astype("float32")
results = []
for trial in range(56):
    model = build(9000 + trial * 20)
    model.compile(keras.optimizers.SGD(1e-4), "mse", run_eagerly=True)
    for start in range(0, 192, 32):
        loss = model.train_on_batch(x[start:start + 32], y[start:start + 32])
        time.sleep(.01)
    results.append({"trial": trial, "loss": float(np.ravel(loss)[0]), "model": model})
    print(f"trial {trial}: {results[-1]['loss']:.4f}", flush=True)
print("best:", min(results, key=lambda result: result["loss"])["trial"])
