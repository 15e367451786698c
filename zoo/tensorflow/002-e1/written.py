"""Seed 002, example 1: model.fit() with a batch of 1024, "too large for available RAM".

As written nothing is wrong. The rows (60,000 of 784 numbers, as many as MNIST has) are 188 MB, which from_tensor_slices() copies once, and
a step of 1024 of them needs some 20 MB. Two epochs instead of ten: the others do the same again.
"""
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(0)
x_train = np.random.default_rng(0).random((60_000, 784), dtype="float32")
y_train = x_train[:, :10].argmax(axis=1)

model = tf.keras.Sequential([
    tf.keras.layers.Dense(1024, activation="relu", input_shape=(784,)),
    tf.keras.layers.Dense(10, activation="softmax"),
])
batch_size = 1024
dataset = tf.data.Dataset.from_tensor_slices((x_train, y_train)).batch(batch_size)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(dataset, epochs=2, verbose=2)
