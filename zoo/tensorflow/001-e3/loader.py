"""Seed 001, example 3, fed by antifreeze.Loader: the same Zarr, shuffled, read ahead by threads in C within 16 MB."""
import dask.array as da
import numpy as np
import tensorflow as tf

import antifreeze

da.from_array(np.random.default_rng(0).random((8192, 256), dtype="float32"), chunks=(1024, 256)).to_zarr("data.zarr")
model = tf.keras.Sequential([tf.keras.layers.Input((256,)), tf.keras.layers.Dense(32, activation="relu"), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")

loader = antifreeze.Loader("data.zarr", batch=64, budget="16MiB", seed=1, as_="tensorflow")
for epoch in range(10):
    for chunk in loader:
        x = chunk - .5
        loss = model.train_on_batch(x, x[:, :1])
    print(f"epoch {epoch}: loss {loss:.4f}", flush=True)
