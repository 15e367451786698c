"""Seed 002, example 3, at a size where its trouble is real on the processor: 70 million weights are 281 MB, with their
gradients and Adam's two averages 1.1 GB. No batch makes that fit into 1100 MB.
"""
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(0)
x_train = np.random.default_rng(0).random((512, 784), dtype="float32")
y_train = x_train[:, :10].argmax(axis=1)
model = tf.keras.Sequential([
    tf.keras.layers.Input((784,)),
    *(tf.keras.layers.Dense(4096, activation="relu") for _ in range(5)),
    tf.keras.layers.Dense(10, activation="softmax"),
])
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x_train, y_train, epochs=1, batch_size=32, verbose=2)
