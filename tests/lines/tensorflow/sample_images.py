"""A callback that paints a few pictures after every batch, for a film of how the decoder learns."""
import time

import numpy as np
from tensorflow import keras


class Film(keras.callbacks.Callback):
    def __init__(self, codes):
        super().__init__()
        self.codes, self.pictures = codes, []

    def on_train_batch_end(self, batch, logs=None):
        self.pictures.append(self.model(self.codes, training=False))  # the line
        time.sleep(.01)


keras.utils.set_random_seed(0)
decoder = keras.Sequential([
    keras.layers.Input((24,)),
    keras.layers.Dense(16 * 16 * 4, activation="relu"),
    keras.layers.Reshape((16, 16, 4)),
    keras.layers.UpSampling2D(8),
    keras.layers.Conv2D(3, 3, padding="same", activation="sigmoid"),
])
decoder.compile("adam", "mse")
codes, pictures = np.random.rand(100, 24).astype("float32"), np.random.rand(100, 128, 128, 3).astype("float32")
decoder.fit(codes, pictures, batch_size=4, epochs=22, verbose=2, callbacks=[Film(codes[:4])])
