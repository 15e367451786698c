"""A tf.data pipeline turned into a list, so that the epochs after the first are faster."""
import random
import time

import tensorflow as tf


def record(number):
    noise = tf.random.stateless_uniform((64, 64, 3), seed=tf.stack([number, number]))
    return noise, number % 10


tf.keras.utils.set_random_seed(0)
batches = list(tf.data.Dataset.range(10_880).map(record).batch(32))  # the line
model = tf.keras.Sequential([tf.keras.layers.Input((64, 64, 3)), tf.keras.layers.Flatten(), tf.keras.layers.Dense(10)])
model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
for epoch in range(2):
    random.shuffle(batches)
    for step, (x, y) in enumerate(batches):
        loss = model.train_on_batch(x, y)
        if step % 25 == 0:
            print(f"epoch {epoch}, step {step}: {float(loss):.4f}", flush=True)
        time.sleep(.02)
