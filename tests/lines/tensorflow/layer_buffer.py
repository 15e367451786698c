"""Layers that hold large tensors which are no weights (seed 004, example 3)."""
import time

import tensorflow as tf


class Noisy(tf.keras.layers.Layer):
    def __init__(self, side):
        super().__init__()
        self.noise = tf.random.uniform((side, side))  # the line

    def call(self, x):
        return x + self.noise[0, :x.shape[-1]]


model = tf.keras.Sequential([tf.keras.layers.Input((32,)), *[Noisy(4500) for _ in range(8)], tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(.01)
for step in range(300):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(tf.random.normal((16, 32)))))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    if step % 20 == 0:
        print(f"step {step}: {float(loss):.4f}", flush=True)
    time.sleep(.02)
