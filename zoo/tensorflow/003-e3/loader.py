"""Seed 003, example 3, fed by antifreeze.Loader: read from the disk in C, shuffled, within 16 MB."""
import numpy as np
import tensorflow as tf

import antifreeze

PICTURES = 9000


def write():
    """What lies on the disk: bytes, as pictures are."""
    rng = np.random.default_rng(0)
    file = np.lib.format.open_memmap("pictures.npy", "w+", "uint8", (PICTURES, 64, 64, 3))
    for number in range(PICTURES):
        file[number] = rng.integers(0, 256 - 100 * (number % 2), (64, 64, 3))
    np.save("labels.npy", np.arange(PICTURES) % 2)


def preprocess_images(images, labels):
    return tf.image.random_flip_left_right(tf.cast(images, tf.float32) / 255.) - .5, labels


tf.keras.utils.set_random_seed(0)
write()
model = tf.keras.Sequential([
    tf.keras.layers.Input((64, 64, 3)),
    tf.keras.layers.Conv2D(filters=32, kernel_size=3, padding="same", activation="relu", use_bias=False),
    tf.keras.layers.GlobalAveragePooling2D(),
    tf.keras.layers.Dense(2),
])
loader = antifreeze.Loader("pictures.npy", labels="labels.npy", batch=16, budget="16MiB", seed=1)
dataset = loader.tf().map(preprocess_images).prefetch(tf.data.AUTOTUNE)
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
model.fit(dataset, epochs=1, steps_per_epoch=250, verbose=2)
