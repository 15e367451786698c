"""model.fit on an array of float64 that holds everything."""
import time

import numpy as np
from tensorflow import keras


def load():
    return np.random.random((70_000, 1000))  # the line


x = load()
y = x[:, :1] * 2
model = keras.Sequential([keras.layers.Input((1000,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1)])
model.compile("adam", "mse")


class Slow(keras.callbacks.Callback):
    """As slow as a larger model would be."""

    def on_train_batch_end(self, batch, logs=None):
        time.sleep(.02)


model.fit(x, y, batch_size=128, epochs=1, steps_per_epoch=500, verbose=2, shuffle=False, callbacks=[Slow()])
