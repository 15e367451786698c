"""A loss that keeps references, in Keras: it puts every prediction aside for a curve at the end. 2 MB a step."""
import tensorflow as tf
from tensorflow import keras


class Remembering(keras.losses.Loss):
    def __init__(self):
        super().__init__()
        self.predictions = []

    def call(self, y_true, y_pred):
        self.predictions.append(tf.identity(y_pred))  # the line
        return tf.reduce_mean(tf.square(y_true - y_pred), axis=-1)


keras.utils.set_random_seed(0)
model = keras.Sequential([keras.layers.Input((64,)), keras.layers.Dense(128, activation="relu"), keras.layers.Dense(1024)])
model.compile("adam", Remembering(), run_eagerly=True)
for step in range(600):
    x = tf.random.uniform((512, 64))
    loss = model.train_on_batch(x, tf.tile(x, (1, 16)))  # the line
    if step % 20 == 0:
        print(f"step {step}: loss {float(loss):.4f}", flush=True)
