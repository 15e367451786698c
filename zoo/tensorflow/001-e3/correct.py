"""Seed 001, example 3, done well: the loop goes over whole chunks; each is read once, and makes many steps."""
import dask.array as da
import numpy as np
import tensorflow as tf

da.from_array(np.random.default_rng(0).random((8192, 256), dtype="float32"), chunks=(1024, 256)).to_zarr("data.zarr")
model = tf.keras.Sequential([tf.keras.layers.Input((256,)), tf.keras.layers.Dense(32, activation="relu"), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")


def process_chunk(chunk):
    return chunk - .5


data = da.map_blocks(process_chunk, da.from_zarr("data.zarr"))
for epoch in range(10):
    for block in data.blocks:
        chunk = block.compute()
        for start in range(0, len(chunk), 64):
            x = chunk[start:start + 64]
            loss = model.train_on_batch(x, x[:, :1])
    print(f"epoch {epoch}: loss {loss:.4f}", flush=True)
