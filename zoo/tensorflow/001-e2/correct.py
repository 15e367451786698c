"""Seed 001, example 2, done well: a batch that fits from the start; and whoever meets an error goes on smaller or fails, but does not
end as if all were well.
"""
import sys

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(0)
x_train = np.random.default_rng(0).random((40_960, 256), dtype="float32")
y_train = x_train[:, :10].argmax(axis=1)
model = tf.keras.models.Sequential([
    tf.keras.layers.Input((256,)),
    tf.keras.layers.Dense(1536, activation="relu"),
    tf.keras.layers.Dense(10),
])
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
for batch in (1024, 512, 256):
    try:
        model.fit(x_train, y_train, batch_size=batch, epochs=3, verbose=2)
        break
    except tf.errors.ResourceExhaustedError as e:
        print(f"a batch of {batch} does not fit: {e}")
else:
    sys.exit("not even 256 samples fit")
