"""A new tf.Variable in each step (002: growing variables)."""
import time

import tensorflow as tf


class Memory(tf.Module):
    def __init__(self):
        super().__init__()
        self.slots = []

    def write(self, value):
        self.slots.append(tf.Variable(value * .5, trainable=False))  # the line


memory = Memory()
weights = tf.Variable(tf.random.normal((400, 400)))
optimizer = tf.keras.optimizers.SGD(1e-4)
for step in range(2000):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(weights, weights)))
    optimizer.apply_gradients([(tape.gradient(loss, weights), weights)])
    memory.write(weights)
    if step % 20 == 0:
        print(f"step {step}: {float(loss):.2f}, {len(memory.slots)} slots", flush=True)
    time.sleep(.01)
