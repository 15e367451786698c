"""A small CNN on pictures like MNIST's, after Keras' own example, on TensorFlow. Without its dropout, which draws anew."""
import argparse
import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np

import notes


class Notes(keras.callbacks.Callback):
    """A loss for each batch: Keras tells the mean since the epoch began."""
    mean = 0.

    def on_train_begin(self, logs=None):
        notes.begin()

    def on_train_batch_end(self, batch, logs=None):
        notes.loss(logs["loss"] * (batch + 1) - self.mean * batch)
        self.mean = logs["loss"]


def digits(count):
    make = np.random.default_rng(7)
    labels = make.integers(0, 10, count)
    kinds = make.standard_normal((10, 28, 28, 1), dtype="float32")
    return kinds[labels] + make.standard_normal((count, 28, 28, 1), dtype="float32"), labels


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--width", type=int, default=16)
    args = parser.parse_args()
    keras.utils.set_random_seed(1)
    model = keras.Sequential([
        keras.Input((28, 28, 1)),
        keras.layers.Conv2D(args.width, 3, activation="relu"),
        keras.layers.Conv2D(2 * args.width, 3, activation="relu"),
        keras.layers.MaxPooling2D(2),
        keras.layers.Flatten(),
        keras.layers.Dense(128, activation="relu"),
        keras.layers.Dense(10, activation="softmax"),
    ])
    model.compile(keras.optimizers.Adam(1e-3), "sparse_categorical_crossentropy")
    data, labels = digits(args.batch * args.steps)
    model.fit(data, labels, batch_size=args.batch, epochs=1, shuffle=False, verbose=0, callbacks=[Notes()])
    notes.end()


if __name__ == "__main__":
    main()
