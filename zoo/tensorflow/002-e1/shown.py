"""Seed 002, example 1, at a size where its trouble is real: a batch of 49,152 rows instead of 1024. The rows are bytes here, as those of
MNIST are, 39 MB of them; a step of all of them needs some 900 MB.
"""
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(0)
x_train = np.random.default_rng(0).integers(0, 256, (49_152, 784), dtype="uint8")
y_train = x_train[:, :10].argmax(axis=1)

model = tf.keras.Sequential([
    tf.keras.layers.Input((784,)),
    tf.keras.layers.Rescaling(1 / 255),
    tf.keras.layers.Dense(1024, activation="relu"),
    tf.keras.layers.Dense(10, activation="softmax"),
])
batch_size = 49_152
dataset = tf.data.Dataset.from_tensor_slices((x_train, y_train)).batch(batch_size)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(dataset, epochs=4, verbose=2)  # the line
