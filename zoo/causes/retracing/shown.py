"""tf.function retracing: the learning rate goes into the step as a Python number that is another one each time, so the function is traced
anew in every step. Each trace stays, with its copy of the table: 2 MB a step.
"""
import time

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(0)
TABLE = np.random.default_rng(0).random((500, 1000), dtype="float32")
weights = tf.Variable(tf.random.normal((1000, 1), stddev=.01))
optimizer = tf.keras.optimizers.SGD()
optimizer.build([weights])


@tf.function
def train_step(rows, rate):
    x = tf.gather(TABLE, rows)  # the line
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) - x[:, :1]))
    optimizer.learning_rate = rate
    optimizer.apply_gradients([(tape.gradient(loss, weights), weights)])
    return loss


for step in range(300):
    rows = tf.random.uniform((64,), 0, 500, tf.int32)
    loss = train_step(rows, .001 / (1 + step))  # the line
    if step % 20 == 0:
        print(f"step {step}: loss {float(loss):.4f}", flush=True)
    time.sleep(.04)
