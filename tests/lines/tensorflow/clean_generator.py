"""tf.data from a generator: one sample at a time."""
import numpy as np
import tensorflow as tf


def samples():
    rng = np.random.default_rng(1)
    for _ in range(100_000):
        image = rng.random((64, 64, 3), dtype=np.float32)
        yield image, np.int64(image[0, 0, 0] * 10)


spec = (tf.TensorSpec((64, 64, 3), tf.float32), tf.TensorSpec((), tf.int64))
dataset = tf.data.Dataset.from_generator(samples, output_signature=spec).batch(16).prefetch(2)
model = tf.keras.Sequential([tf.keras.layers.Input((64, 64, 3)), tf.keras.layers.AveragePooling2D(4), tf.keras.layers.Flatten(), tf.keras.layers.Dense(10)])
model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(dataset, epochs=4, steps_per_epoch=150, verbose=2)
