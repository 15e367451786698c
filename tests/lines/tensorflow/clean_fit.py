"""model.fit on modest data, with a validation part."""
import time

import numpy as np
from tensorflow import keras


class Slow(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        time.sleep(.01)


x, y = np.random.rand(3000, 60).astype("float32"), np.random.rand(3000, 1).astype("float32")
model = keras.Sequential([keras.layers.Input((60,)), keras.layers.Dense(100, activation="relu"), keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(x, y, batch_size=32, epochs=12, validation_split=.1, verbose=2, callbacks=[Slow()])
