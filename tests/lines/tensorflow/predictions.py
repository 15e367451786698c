"""model.predict on many chunks, with all results kept."""
import numpy as np
from tensorflow import keras

model = keras.Sequential([keras.layers.Input((50,)), keras.layers.Dense(2000)])
results = []


def score(chunk):
    x = np.full((200, 50), chunk / 100, dtype="float32")
    return model.predict(x, verbose=0)  # the line


for chunk in range(500):
    results.append(score(chunk))
    if chunk % 10 == 0:
        print(f"chunk {chunk}: {results[-1].mean():.4f}", flush=True)
