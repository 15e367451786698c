"""A PyDataset that has all its pictures read and resized when it is made."""
import time

import numpy as np
import tensorflow as tf
from tensorflow import keras


def read(number):
    return np.random.default_rng(number).integers(0, 256, (200, 200, 3), dtype=np.uint8)


class Pictures(keras.utils.PyDataset):
    def __init__(self, count, batch_size):
        super().__init__()
        self.batch_size = batch_size
        self.pictures = [tf.image.resize(read(number), (160, 160)) for number in range(count)]  # the line

    def __len__(self):
        return len(self.pictures) // self.batch_size

    def __getitem__(self, batch):
        start = batch * self.batch_size
        time.sleep(.03)
        chosen = self.pictures[start:start + self.batch_size]
        return np.stack(chosen) / 255, np.arange(start, start + len(chosen)) % 10


keras.utils.set_random_seed(0)
model = keras.Sequential([
    keras.layers.Input((160, 160, 3)), keras.layers.AveragePooling2D(8), keras.layers.Flatten(), keras.layers.Dense(10)])
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(Pictures(1750, 8), epochs=2, verbose=2)
