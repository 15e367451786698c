"""Seed 002, example 1, fed by antifreeze.Loader: 440 MB of rows through 32 MB of memory."""
import numpy as np
import tensorflow as tf

import antifreeze

ROWS = 140_000


def write(x_path, y_path):
    """What was downloaded once and lies on the disk since."""
    rng = np.random.default_rng(0)
    x = np.lib.format.open_memmap(x_path, "w+", "float32", (ROWS, 784))
    y = np.lib.format.open_memmap(y_path, "w+", "int64", (ROWS,))
    for start in range(0, ROWS, 5000):
        part = rng.random((5000, 784), dtype="float32")
        x[start:start + 5000], y[start:start + 5000] = part, part[:, :10].argmax(axis=1)


tf.keras.utils.set_random_seed(0)
write("x.npy", "y.npy")
model = tf.keras.Sequential([
    tf.keras.layers.Input((784,)),
    tf.keras.layers.Dense(256, activation="relu"),
    tf.keras.layers.Dense(10, activation="softmax"),
])
loader = antifreeze.Loader("x.npy", labels="y.npy", batch=256, budget="32MiB", seed=1)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(loader.tf(), epochs=1, verbose=2)
