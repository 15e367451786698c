"""Seed 003, example 1: a loop of one's own with a batch of 1024, "potentially too large for available RAM".

As written nothing is wrong: 1024 rows of 256 numbers are 1 MB, and a step of this model needs some 10 MB. The seed leaves model and data
open; here they are 20,000 rows (20 MB), of which from_tensor_slices() makes a copy in every epoch, and frees it.
"""
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(0)
x = np.random.default_rng(0).random((20_000, 256), dtype="float32")
training_data = (x, x[:, :10].argmax(axis=1))
model = tf.keras.Sequential([tf.keras.layers.Input((256,)), tf.keras.layers.Dense(512, activation="relu"), tf.keras.layers.Dense(10)])
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.Adam(.003)

batch_size = 1024
for epoch in range(8):
    for x, y in tf.data.Dataset.from_tensor_slices(training_data).batch(batch_size):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    print(f"epoch {epoch}: loss {float(loss):.4f}", flush=True)
