"""Seed 001, example 2: the training is wrapped so that running out of memory is caught and printed.

On a CPU that catches nothing. Linux grants memory that is not there, so no ResourceExhaustedError is ever raised: the machine pages, or
the program is killed. (On a GPU it is raised and swallowed: causes/gpu-oom-swallowed.) Here 40,960 samples at once need a gigabyte.
"""
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(0)
x_train = np.random.default_rng(0).random((40_960, 256), dtype="float32")
y_train = x_train[:, :10].argmax(axis=1)
try:
    model = tf.keras.models.Sequential([
        tf.keras.layers.Input((256,)),
        tf.keras.layers.Dense(1536, activation="relu"),
        tf.keras.layers.Dense(10),
    ])
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(x_train, y_train, batch_size=40_960, epochs=4, verbose=2)  # the line
except tf.errors.ResourceExhaustedError as e:
    print(f"Out of memory error encountered: {e}")
except Exception as e:
    print(f"An unexpected error occurred: {e}")
