"""A tf.function that is given the step as a Python number, and so is traced anew for each step."""
import time

import numpy as np
import tensorflow as tf

PRIOR = np.random.default_rng(0).random((300, 700), dtype="float32")  # how often a word follows another

tf.random.set_seed(0)
embedding = tf.Variable(tf.random.normal((300, 32), stddev=.1))
out = tf.Variable(tf.random.normal((32, 700), stddev=.1))
optimizer = tf.keras.optimizers.SGD(.1)
optimizer.build([embedding, out])


@tf.function
def train_step(words, following, step):
    with tf.GradientTape() as tape:
        logits = tf.matmul(tf.gather(embedding, words), out) + tf.gather(PRIOR, words) / (step + 1)  # the line
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(following, logits))
    optimizer.apply_gradients(zip(tape.gradient(loss, [embedding, out]), [embedding, out]))
    return loss


for step in range(140):
    words = tf.random.uniform((64,), 0, 300, tf.int32)
    loss = train_step(words, (words * 7) % 700, step)  # the line
    if step % 10 == 0:
        print(f"step {step}: {float(loss):.4f}", flush=True)
    time.sleep(.02)
