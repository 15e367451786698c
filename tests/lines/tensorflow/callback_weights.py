"""A callback that keeps the weights after every batch."""
import numpy as np
from tensorflow import keras


class Keep(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.weights = []

    def on_train_batch_end(self, batch, logs=None):
        self.weights.append(self.model.get_weights())  # the line


model = keras.Sequential([keras.layers.Input((64,)), keras.layers.Dense(600, activation="relu"), keras.layers.Dense(100)])
model.compile("sgd", "mse")
x, y = np.random.rand(2000, 64).astype("float32"), np.random.rand(2000, 100).astype("float32")
model.fit(x, y, batch_size=16, epochs=20, verbose=2, callbacks=[Keep()])
