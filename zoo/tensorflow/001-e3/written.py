"""Seed 001, example 3: "efficient data loading" with Dask, as written: process_chunk is used before it is defined, a NameError."""
import dask.array as da
import numpy as np
import tensorflow as tf

da.from_array(np.random.default_rng(0).random((4096, 64), dtype="float32"), chunks=(1024, 64)).to_zarr("data.zarr")
model = tf.keras.Sequential([tf.keras.layers.Input((64,)), tf.keras.layers.Dense(32, activation="relu"), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")

data = da.from_zarr("data.zarr")
for chunk in da.map_blocks(process_chunk, data, chunks=(1000,)):  # the line
    processed_chunk = chunk.compute()
    model.train_on_batch(processed_chunk, processed_chunk.sum(axis=1))


def process_chunk(chunk):
    return chunk
