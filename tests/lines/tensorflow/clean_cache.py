"""A modest data set behind cache(): memory grows through the first epoch, and from then on it is read from there."""
import time

import tensorflow as tf


class Pace(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        time.sleep(.025)


def record(number):
    noise = tf.random.stateless_uniform((64, 64, 3), seed=tf.stack([number, number]))
    return noise, number % 10


tf.keras.utils.set_random_seed(0)
dataset = tf.data.Dataset.range(4800).map(record).cache().batch(32).prefetch(2)
model = tf.keras.Sequential([tf.keras.layers.Input((64, 64, 3)), tf.keras.layers.AveragePooling2D(4), tf.keras.layers.Flatten(), tf.keras.layers.Dense(10)])
model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(dataset, epochs=4, verbose=2, callbacks=[Pace()])
