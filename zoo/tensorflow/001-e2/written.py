"""Seed 001, example 2, as it is written, around a model and a fit() of ordinary size: Keras' batches of 32. Nothing runs out, so that nothing is
caught, and it is as good as the training inside. (On a GPU where it runs out, the error is swallowed: causes/gpu-oom-swallowed.)
"""
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(0)
x_train = np.random.default_rng(0).random((20_480, 256), dtype="float32")
y_train = x_train[:, :10].argmax(axis=1)
try:
    model = tf.keras.models.Sequential([
        tf.keras.layers.Input((256,)),
        tf.keras.layers.Dense(1536, activation="relu"),
        tf.keras.layers.Dense(10),
    ])
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(x_train, y_train, epochs=3, verbose=2)
except tf.errors.ResourceExhaustedError as e:
    print(f"Out of memory error encountered: {e}")
except Exception as e:
    print(f"An unexpected error occurred: {e}")
