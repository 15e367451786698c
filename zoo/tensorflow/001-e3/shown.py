"""Seed 001, example 3, repaired so that it runs: the function stands above its use, and the chunks have both dimensions.

A loop over a Dask array gives rows, not chunks. For each of them the chunk that it lies in is read and unpacked anew: steps wait for
their data most of the time, with one row in each.
"""
import time

import dask.array as da
import numpy as np
import tensorflow as tf

ROWS, SECONDS = 8192, 35
da.from_array(np.random.default_rng(0).random((ROWS, 256), dtype="float32"), chunks=(1024, 256)).to_zarr("data.zarr")
model = tf.keras.Sequential([tf.keras.layers.Input((256,)), tf.keras.layers.Dense(32, activation="relu"), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")


def process_chunk(chunk):
    return chunk - .5


data = da.from_zarr("data.zarr")
begin, losses = time.monotonic(), []
for chunk in da.map_blocks(process_chunk, data):
    processed_chunk = chunk.compute()[None]
    losses.append(model.train_on_batch(processed_chunk, processed_chunk[:, :1]))
    if time.monotonic() - begin > SECONDS:
        break
print(f"{len(losses)} of {ROWS} rows in {SECONDS} s, loss {np.mean(losses[-100:]):.4f}")
