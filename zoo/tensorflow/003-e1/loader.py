"""Seed 003, example 1, fed by antifreeze.Loader: what it reads ahead stays within 16 MB, whatever lies on the disk."""
import numpy as np
import tensorflow as tf

import antifreeze

tf.keras.utils.set_random_seed(0)
x = np.random.default_rng(0).random((40_960, 256), dtype="float32")
np.save("x.npy", x)
np.save("y.npy", x[:, :10].argmax(axis=1))
del x
model = tf.keras.Sequential([tf.keras.layers.Input((256,)), tf.keras.layers.Dense(1536, activation="relu"), tf.keras.layers.Dense(10)])
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.Adam(.003)

loader = antifreeze.Loader("x.npy", labels="y.npy", batch=1024, budget="16MiB", seed=1, as_="tensorflow")
for epoch in range(4):
    for x, y in loader:
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    print(f"epoch {epoch}: loss {float(loss):.4f}", flush=True)
