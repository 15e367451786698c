"""Seed 002, example 3: the model is trained inside tf.device('/GPU:0'), "still might lead to OOM".

Where there is no GPU, TensorFlow falls back to the processor and says nothing: nothing is wrong with these 20,000 rows there. What happens on a GPU
is shown in torch: causes/gpu-model-too-large, causes/gpu-dataset.
"""
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(0)
x_train = np.random.default_rng(0).random((20_000, 784), dtype="float32")
y_train = x_train[:, :10].argmax(axis=1)
model = tf.keras.Sequential([
    tf.keras.layers.Input((784,)),
    tf.keras.layers.Dense(256, activation="relu"),
    tf.keras.layers.Dense(10, activation="softmax"),
])
with tf.device("/GPU:0"):
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x_train, y_train, epochs=2, batch_size=32, verbose=2)
